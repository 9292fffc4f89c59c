// Rewards by edit distance, what is known of every next token, and the critic's values made with it: scores/edit_distance,
// methods/optimal_values, methods/lookahead and methods/columns of the package, for one example with one reference.

// A row of the distance table, D_j of a prediction to the first j tokens of the reference, after one token more.
function extendRow(row, token, reference, unknown) {
  const next = [row[0] + 1];
  reference.forEach((wanted, place) => {
    const differs = token !== wanted || wanted === unknown ? 1 : 0;
    next.push(Math.min(row[place + 1] + 1, next[place] + 1, row[place] + differs));
  });
  return next;
}

// R = |Y| − d, or 1 − d / |Y|; the reference is without its end token.
function scoreOf(score, row) {
  const length = row.length - 1;
  const kept = length - row[length];
  return score.normalise ? kept / Math.max(1, length) : kept;
}

// One row before every token, and one after the last; the end token changes nothing.
function distanceRows(score, tokens, reference, end) {
  const rows = [Array.from({ length: reference.length + 1 }, (_, place) => place)];
  for (const token of tokens) {
    const row = rows[rows.length - 1];
    rows.push(token === end ? row : extendRow(row, token, reference, score.unknown));
  }
  return rows;
}

function rewardTokens(score, rows) {
  const scores = rows.map((row) => scoreOf(score, row));
  const gains = scores.slice(1).map((after, place) => after - scores[place]);
  return score.shaping ? gains : gains.map((_, place) => (place + 1 < gains.length ? 0 : scores[place + 1]));
}

// K(a) = R(Ŷ a) − R(Ŷ): what a token earns at once.
function lookahead(score, row, reference, numTokens) {
  const before = scoreOf(score, row);
  const gain = (token) => scoreOf(score, extendRow(row, token, reference, score.unknown)) - before;
  // Tokens that the reference has not are all alike: one that is no token stands for them.
  const gains = new Float64Array(numTokens).fill(gain(-1));
  for (const token of reference) {
    gains[token] = gain(token);
  }
  return { gains, others: gain(-1) };
}

// K(a) = Q*(a) − Q*(end): what a token earns if all that can still be right is.
function bestCompletions(score, row, reference, numTokens) {
  const length = reference.length;
  // Unknown tokens after the first j cost one each, whatever is said in their place.
  const lost = Array.from({ length: length + 1 }, (_, place) =>
    reference.slice(place).reduce((count, token) => count + (token === score.unknown ? 1 : 0), 0),
  );
  // Said next, the token at a place costs what the prefix before it costs, and what is lost behind it.
  const right = reference.map((_, place) => row[place] + lost[place + 1]);
  const wrong = 1 + Math.min(...right, ...row.map((distance, place) => distance + lost[place]));
  const distances = new Float64Array(numTokens).fill(wrong);
  reference.forEach((token, place) => {
    if (token !== score.unknown) {
      distances[token] = Math.min(distances[token], right[place]);
    }
  });
  const unit = score.normalise ? Math.max(1, length) : 1;
  return { gains: distances.map((distance) => (row[length] - distance) / unit), others: (row[length] - wrong) / unit };
}

const KNOWN = { lookahead, "optimal-completion": bestCompletions };

// The tokens that are valued one by one: the end, those of the reference, and the actor's likeliest first ones.
function chooseColumns(count, end, reference, first) {
  const chosen = new Set([end, ...reference]);
  const others = Array.from(first.keys()).sort((one, other) => first[other] - first[one]);
  for (const token of others) {
    if (chosen.size >= Math.min(count, first.length)) {
      break;
    }
    chosen.add(token);
  }
  return chosen;
}

// Q̂ of all tokens at every step, or null without a critic. Sequences here are with their end token.
function criticValues(model, reference, tokens, actorSteps, rows) {
  const { critic, score, end } = model;
  const steps = followCritic(
    critic,
    reference,
    tokens,
    actorSteps.map((one) => one.state),
  );
  const wanted = reference.slice(0, -1);
  const columns =
    critic.columns === null ? null : chooseColumns(critic.columns, end, wanted, actorSteps[0].probabilities);
  return steps.map(({ values, rest, attention }, place) => {
    const known = critic.residualOn in KNOWN ? KNOWN[critic.residualOn](score, rows[place], wanted, values.length) : null;
    const made = values.map((value, token) => {
      const hasColumn = columns === null || columns.has(token);
      const own = hasColumn ? value : rest;
      if (known === null) {
        return own;
      }
      // By definition, as add_known of methods/lookahead.py: nothing is earned after the end.
      return token === end ? 0 : own + (hasColumn ? known.gains[token] : known.others);
    });
    return { values: made, attention };
  });
}

// A prediction, with its end token, step by step.
function follow(model, source, reference, tokens) {
  const actorSteps = followActor(model.actor, source, tokens);
  const rows = model.score === null ? null : distanceRows(model.score, tokens, reference.slice(0, -1), model.end);
  const criticSteps = model.critic === null ? null : criticValues(model, reference, tokens, actorSteps, rows);
  const rewards = rows === null ? null : rewardTokens(model.score, rows);
  return tokens.map((token, place) => ({
    token,
    probabilities: actorSteps[place].probabilities,
    sourceAttention: actorSteps[place].attention,
    values: criticSteps === null ? null : criticSteps[place].values,
    referenceAttention: criticSteps === null ? null : criticSteps[place].attention,
    reward: rewards === null ? null : rewards[place],
  }));
}

// The model of a page: its description with tensors in place of where they are.
function openModel(description, text) {
  const weights = readWeights(text, description.precision);
  const open = (network) => network && { ...network, tensors: readTensors(network.tensors, weights) };
  return { ...description, actor: open(description.actor), critic: open(description.critic) };
}
