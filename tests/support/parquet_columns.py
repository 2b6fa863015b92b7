"""Random columns for tests of Parquet, as plain Python values, and the text of parquet_tool.

A value is an int (booleans, integers, days, times), the bits of a float as hexadecimal, a decimal's
text, or bytes; None is null; a list column's value is a list of them.
"""

import dataclasses
import decimal
import struct
import uuid

decimal.getcontext().prec = 60

RANGES = {"bool": (0, 1), "int8": (-2**7, 2**7 - 1), "int16": (-2**15, 2**15 - 1),
          "int32": (-2**31, 2**31 - 1), "int64": (-2**63, 2**63 - 1), "uint8": (0, 2**8 - 1),
          "uint16": (0, 2**16 - 1), "uint32": (0, 2**32 - 1), "uint64": (0, 2**64 - 1),
          "date": (-719162, 2932896)}  # years 1 to 9999
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
BYTES = ("string", "binary", "uuid", "json")
LETTERS = ["a", "b", "Z", "\u00e9", "\u20ac", "\U0001f600", "\x7f", "\x00", "long" * 20]


@dataclasses.dataclass
class Column:
    name: str
    type: str
    unit: str = "us"
    utc: int = 0
    precision: int = 0
    scale: int = 0
    nullable: int = 1
    list: int = 0
    element_nullable: int = 0

    def line(self):
        return (f"column {self.name.encode().hex()} {self.type} {self.unit} {self.utc}"
                f" {self.precision} {self.scale} {self.nullable} {self.list}"
                f" {self.element_nullable}")

    def kind(self):
        """What of it both sides of a comparison must agree on."""
        unit = (self.unit, self.utc) if self.type in ("time", "timestamp") else ()
        return (self.name, self.type, *unit, self.precision, self.scale, self.list)


def every_type():
    """(type, unit, utc, precision, scale)"""
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float", "double", "date", *BYTES):
        yield name, "us", 0, 0, 0
    for precision, scale in ((1, 0), (4, 2), (9, 9), (10, 3), (18, 0), (19, 5), (38, 0), (38, 38)):
        yield "decimal", "us", 0, precision, scale
    for name in ("time", "timestamp"):
        for unit in ("ms", "us", "ns"):
            for utc in (0, 1):
                yield name, unit, utc, 0, 0


def every_column(random):
    """Each type as a column and as a list, nulls as they fall."""
    columns = []
    for is_list in (0, 1):
        for number, (name, unit, utc, precision, scale) in enumerate(every_type()):
            columns.append(Column(f"{name}{number}{'s' * is_list}", name, unit, utc, precision,
                                  scale, random.randrange(2), is_list,
                                  is_list * random.randrange(2)))
    return columns


def bits_of(value, form):
    return "" if value is None else struct.pack(">" + form, value).hex()


def draw_scalar(random, column):
    if column.type in ("float", "double"):
        form = "f" if column.type == "float" else "d"
        number = random.choice([0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"),
                                random.uniform(-1e30, 1e30), random.random()])
        return bits_of(number, form)
    if column.type == "decimal":
        digits = random.randrange(10 ** random.randint(1, column.precision))
        sign = random.choice([-1, 1])
        return text_of(decimal.Decimal(sign * digits).scaleb(-column.scale), column.scale)
    if column.type == "time":
        return random.randrange(86400 * PER_SECOND[column.unit])
    if column.type == "timestamp":
        seconds = random.randrange(-9 * 10**9, 9 * 10**9)  # years 1684 to 2255: ns have no more
        return seconds * PER_SECOND[column.unit] + random.randrange(PER_SECOND[column.unit])
    if column.type == "uuid":
        return uuid.UUID(int=random.getrandbits(128)).bytes
    if column.type == "json":
        return random.choice(['{"a":1}', "[]", '"\u00e9"', "12", '{"b":[1,2,{"c":null}]}']).encode()
    if column.type in BYTES:
        text = "".join(random.choices(LETTERS, k=random.randrange(6))).encode()
        return text if column.type == "string" else text + bytes(random.choices(range(256), k=2))
    low, high = RANGES[column.type]
    return random.choice([low, high, random.randint(low, high), random.randint(0, min(9, high))])


def text_of(number, scale):
    text = format(number, f".{scale}f")
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def draw(random, column, rows):
    """Values of a column: some columns have few distinct ones, some come in runs."""
    few = [draw_scalar(random, column) for _ in range(random.choice([1, 5, 2000]))]

    def one(is_nullable):
        if is_nullable and random.random() < 0.2:
            return None
        return random.choice(few)

    def row():
        if not column.list:
            return one(column.nullable)
        if column.nullable and random.random() < 0.2:
            return None
        return [one(column.element_nullable) for _ in range(random.randrange(4))]

    values = []
    while len(values) < rows:
        values += [row()] * random.choice([1, 1, 1, 30])
    return values[:rows]


def lines_of(column, values):
    for value in values:
        if value is None:
            yield "n"
        elif isinstance(value, list):
            yield f"l {len(value)}"
            yield from lines_of(column, value)
        else:
            yield f"v {value.hex() if isinstance(value, bytes) else value}"


def text_of_table(columns, table, pairs=()):
    """The text that parquet_tool writes a file from."""
    rows = len(table[0])
    lines = [f"pair {key.encode().hex()} {value.encode().hex()}" for key, value in pairs]
    lines += [column.line() for column in columns]
    lines.append(f"group {rows}")
    for column, values in zip(columns, table):
        lines += lines_of(column, values)
    return "\n".join(lines) + "\n"


def parse(text):
    """What parquet_tool has read: (columns, values of each, {refused name: message}, pairs)."""
    columns, table, refused, pairs = [], [], {}, []
    lines = iter(text.splitlines())
    pending = next(lines, None)
    while pending is not None and not pending.startswith("group "):
        words = pending.split(" ")
        if words[0] == "pair":
            pairs.append(tuple(bytes.fromhex(word).decode() for word in words[1:]))
        else:
            columns.append(Column(bytes.fromhex(words[1]).decode(), words[2], words[3],
                                  *map(int, words[4:])))
            table.append([])
        pending = next(lines, None)
    while pending is not None:
        rows = int(pending.split()[1])
        for column, values in zip(columns, table):
            read_rows(lines, column, values, rows, refused)
        pending = next(lines, None)
    return columns, table, refused, pairs


def read_rows(lines, column, values, rows, refused):
    for _ in range(rows):
        line = next(lines)
        if line.startswith("refused "):
            refused[column.name] = line.split(" ", 2)[2]
            return
        if line.startswith("l "):
            values.append([scalar(column, next(lines)) for _ in range(int(line[2:]))])
        else:
            values.append(scalar(column, line))


def scalar(column, line):
    if line == "n":
        return None
    text = line[2:]
    if column.type in BYTES:
        return bytes.fromhex(text)
    return text if column.type in ("float", "double", "decimal") else int(text)
