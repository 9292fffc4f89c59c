"""What is kept as JSON: dataclasses that pydantic reads back; a fault names the dotted path of what is wrong."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import BeforeValidator, Strict, TypeAdapter, ValidationError

# Strict: "1" or true in place of a number is a fault of the file, and no number.
Flag: TypeAlias = Annotated[bool, Strict()]
Whole: TypeAlias = Annotated[int, Strict()]
Known: TypeAlias = Annotated[float, Strict()]
# JSON cannot hold a number that is not finite: it is written as null.
Number: TypeAlias = Annotated[float, Strict(), BeforeValidator(lambda value: math.nan if value is None else value)]

_EXPECTED = {
    "string_type": "a string",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "tuple_type": "a list",
    "dict_type": "an object",
    "dataclass_type": "an object",
}


@dataclass(frozen=True, slots=True)
class Record:
    """The outermost object of a JSON file."""

    record_name: ClassVar[str]  # with which the path of a fault begins

    def to_dict(self) -> dict[str, Any]:
        """Turn the record into what JSON can hold; numbers that are not finite become null."""
        return {name: finite_or_none(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: object) -> Self:
        """Read what `to_dict` wrote; a fault is a ValueError that names the field. Unknown fields are left alone."""
        try:
            return TypeAdapter(cls).validate_python(content)
        except ValidationError as error:
            # One fault, one line: further ones often follow from the first.
            fault = error.errors(include_url=False)[0]
        if fault["type"] == "value_error":  # of our own, which names its field
            raise ValueError(str(fault["ctx"]["error"]))
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault["loc"])
        raise ValueError(f"{cls.record_name}{path}: {_describe(fault['type'], fault['input'], fault['msg'])}")


def finite_or_none(value: object) -> object:
    """Replace every number JSON cannot hold, however deep, by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite_or_none(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_or_none(item) for item in value]
    return value


def _describe(kind: str, found: object, message: str) -> str:
    if kind in ("missing", "missing_argument"):
        return "missing"
    if kind not in _EXPECTED:
        return message
    return f"expected {_EXPECTED[kind]}, found {'null' if found is None else type(found).__name__}"
