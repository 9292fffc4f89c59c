"""The comparison as a table: what its columns are, and as Markdown for a README."""

import math
from collections.abc import Collection

from seqcritic.report.columns import Column, markdown_columns
from seqcritic.report.comparison import Comparison, MethodRow
from seqcritic.report.formats import (
    format_cost,
    format_count,
    format_gain,
    format_interval,
    format_minutes,
    format_p_value,
    format_score,
    format_share,
)


def list_columns(comparison: Comparison) -> tuple[Column, ...]:
    """List what every table shows, leaving out what one method or one seed gives no meaning to.

    A table with little width may set some of it beneath the label of a row.
    """
    rows = comparison.rows
    with_beam = comparison.with_beam
    chosen = _list_chosen(comparison)
    columns = [Column("method", "method", tuple(row.label for row in rows))]
    if len(rows) > 1:
        heading = f"{comparison.score_name} {_arrow(comparison)} valid"
        columns.append(Column("valid", heading, tuple(write_valid(comparison, row) for row in rows), chosen))
    columns += _list_score_columns(comparison, "", " greedy" if with_beam else "")
    if with_beam is not None:
        columns += _list_score_columns(with_beam, "beam-", f" {name_beam(rows[0])}")
        columns.append(Column("rho", "ρ", tuple(write_rhos(row) for row in rows)))
    if comparison.num_seeds > 1:
        columns.append(Column("seeds", "by seed", tuple(write_seeds(row) for row in rows)))
        columns.append(Column("spread", "sd over seeds", tuple(write_spread(row) for row in rows)))
        if with_beam is not None:
            heading = f"by seed, {name_beam(rows[0])}"
            columns.append(Column("beam-seeds", heading, tuple(write_seeds(row) for row in with_beam.rows)))
            spreads = tuple(write_spread(row) for row in with_beam.rows)
            columns.append(Column("beam-spread", f"sd over seeds, {name_beam(rows[0])}", spreads))
    if any(row.critic_explains is not None for row in rows):
        columns.append(Column("critic", "critic explains", tuple(format_share(row.critic_explains) for row in rows)))
    columns += [
        Column("updates", "updates", tuple(format_count(row.updates) for row in rows)),
        Column("cost", "cost per update", tuple(format_cost(row.cost_per_update) for row in rows)),
        Column("minutes", "minutes", tuple(format_minutes(row.seconds) for row in rows)),
    ]
    return tuple(columns)


def list_signatures(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """List what each signature is of, and the signature."""
    with_beam = comparison.with_beam
    name = comparison.score_name
    if with_beam is None:
        return ((f"{name} signature", comparison.signature),)
    beam = name_beam(comparison.rows[0])
    return (f"{name} signature, greedy", comparison.signature), (f"{name} signature, {beam}", with_beam.signature)


def list_valid_signatures(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """List the signature of the validation scores, if it is known: that of the test scores is of other sentences."""
    name = f"validation {comparison.score_name} signature"
    return ((name, comparison.valid_signature),) if comparison.valid_signature else ()


def name_beam(row: MethodRow) -> str:
    """Name the beam search a row was judged by."""
    assert row.beam is not None
    return f"beam {row.beam.width}"


def markdown_table(comparison: Comparison, hidden: Collection[str] = ()) -> str:
    """Write the comparison as a Markdown table, some columns hidden, the chosen in bold and the signature beneath."""
    columns = [column for column in list_columns(comparison) if column.name not in hidden]
    lines = [markdown_columns(columns)]
    for name, signature in list_signatures(comparison):
        lines += ["", f"{name}: `{signature}`"]
    return "\n".join([*lines, ""])


def _list_score_columns(comparison: Comparison, prefix: str, search: str) -> list[Column]:
    """List the columns of one search: score, interval and, against a baseline, gain and p-value."""
    rows = comparison.rows
    heading = f"{comparison.score_name} {_arrow(comparison)}{search}"
    columns = [
        Column(f"{prefix}score", heading, tuple(format_score(row.score) for row in rows), _list_chosen(comparison)),
        Column(f"{prefix}interval", "95% interval", tuple(format_interval(row.low, row.high) for row in rows)),
    ]
    if comparison.baseline_row is not None:
        gains = tuple(format_gain(comparison, row) for row in rows)
        columns.append(Column(f"{prefix}gain", "against baseline", gains))
        heading = "p (Holm)" if comparison.num_tests > 1 else "p"
        columns.append(Column(f"{prefix}p-value", heading, tuple(format_p_value(comparison.p_value(r)) for r in rows)))
    return columns


def _list_chosen(comparison: Comparison) -> frozenset[int]:
    """List the rows that validation chose by their places."""
    return frozenset(comparison.rows.index(row) for row in comparison.chosen_rows)


def _arrow(comparison: Comparison) -> str:
    return "↓" if comparison.lower_is_better else "↑"


def write_valid(comparison: Comparison, row: MethodRow) -> str:
    """Write the validation score of a row, by which it is chosen or not."""
    score = comparison.valid_score(row)
    return format_score(math.nan if score is None else score)


def write_rhos(row: MethodRow) -> str:
    """Write the length rewards of a row, one a seed."""
    assert row.beam is not None
    return " ".join(f"{rho:g}" for rho in row.beam.rhos)


def write_seeds(row: MethodRow) -> str:
    """Write the scores of a row, one a seed."""
    return " ".join(format_score(score) for score in row.seed_scores)


def write_spread(row: MethodRow) -> str:
    """Write how much the scores of a row vary over seeds."""
    return format_score(math.nan if row.seed_deviation is None else row.seed_deviation)
