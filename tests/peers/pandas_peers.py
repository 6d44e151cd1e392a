# peers: pandas pypng
# builds: peer_records
"""Tables of paths and labels as pandas writes them, read by pandas itself: the same rows, labels and classes.

Labels follow pipeline/sources/README.md, "CSV": integers keep their value, other numbers are classes in numeric order
where that is said, names in bytewise order, as pandas.factorize(sort=True) has it. What pandas guesses and Headrace does not (an
encoding, a separator, which row is a header, what an empty label means) is refused.
"""

import csv
import gzip
import io
import tempfile
from pathlib import Path

import pandas as pd
import png

import peers

ROWS = 24


def write_images(folder, names):
    for i, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        out = io.BytesIO()
        png.Writer(width=2, height=1, greyscale=False).write(out, [[i, 2 * i, 3 * i, 9, 8, 7]])
        path.write_bytes(out.getvalue())


PATHS = [f"images/{i:02}.png" for i in range(ROWS)]
ODD_PATHS = [f"{name}-{i}.png" for i, name in enumerate(
    ["plain", "with blank", "comma, inside", 'a "quoted" word', "größer", "日本", "#hash", "'apostrophe'"] * 3)]
INTEGERS = [(i * 7) % 11 for i in range(ROWS)]
FRACTIONS = [(i % 5) / 4 + 0.25 for i in range(ROWS)]
NAMES = [("dog", "cat", "Emu", "cat and dog", "zebra", "äffin")[i % 6] for i in range(ROWS)]


def table(labels, paths=PATHS, **more):
    return pd.DataFrame({"path": paths, "label": labels, **more})


# Cells with line feeds, which pandas leaves unquoted where a lone carriage return ends the lines.
BARE_LINE_FEEDS = ("names with line ends", "other columns")


def columns():
    """Frames whose columns are of every type that pandas writes."""
    for kind in ("int8", "int64", "uint64", "float32", "float64", "Int64", "string", "category", "object"):
        yield f"integers as {kind}", table(pd.Series(INTEGERS).astype(kind))
    for kind in ("float32", "float64", "Float64", "string", "category"):
        yield f"fractions as {kind}", table(pd.Series(FRACTIONS).astype(kind))
    for kind in ("object", "string", "category"):
        yield f"names as {kind}", table(pd.Series(NAMES).astype(kind))
    yield "negative integers", table([i - 12 for i in range(ROWS)])
    yield "negative fractions", table([i / 2 - 6.25 for i in range(ROWS)])
    yield "large integers", table([2**60 + i for i in range(ROWS)])
    yield "booleans", table([i % 2 == 0 for i in range(ROWS)])
    yield "dates", table(pd.date_range("2026-01-01", periods=ROWS).astype(str))
    yield "leading zeros", table([f"{i % 7:03}" for i in range(ROWS)])
    yield "signs", table([f"{i % 7:+}" for i in range(ROWS)])
    yield "exponents", table([f"{i % 7}e0" for i in range(ROWS)])
    yield "floats beside integers", table([str(i % 4) if i % 2 else f"{i % 4}.0" for i in range(ROWS)])
    yield "small fractions", table([(i % 6) * 1e-9 for i in range(ROWS)])
    yield "names with commas", table([f"a,{i % 3}" for i in range(ROWS)])
    yield "names with quotes", table([f'"{"xyz"[i % 3]}"' for i in range(ROWS)])
    yield "names with line ends", table([f"one\n{'xyz'[i % 3]}" for i in range(ROWS)])
    yield "one class", table(["same"] * ROWS)
    yield "odd paths", table(NAMES, ODD_PATHS)
    yield "other columns", table(INTEGERS, note=["a, b"] * ROWS, text=["two\nlines"] * ROWS, nothing=[None] * ROWS)
    yield "columns the other way", table(INTEGERS)[["label", "path"]]
    yield "rows the other way", table(INTEGERS).iloc[::-1]
    yield "an image twice", pd.concat([table(NAMES), table(NAMES)])


SPELLINGS = {
    "plain": {"index": False},
    "with the index": {},
    "with a named index": {"index_label": "row"},
    "CRLF": {"index": False, "lineterminator": "\r\n"},
    "CR": {"index": False, "lineterminator": "\r"},
    "byte order mark": {"index": False, "encoding": "utf-8-sig"},
    "all quoted": {"index": False, "quoting": csv.QUOTE_ALL},
    "names quoted": {"index": False, "quoting": csv.QUOTE_NONNUMERIC},
    "numbers of 6 digits": {"index": False, "float_format": "%.6f"},
    "numbers with exponents": {"index": False, "float_format": "%.6e"},
}


def has_fractions(spelled):
    numbers = pd.to_numeric(spelled["label"], errors="coerce")
    return bool(numbers.notna().all() and (numbers != numbers.round()).any())


def expected(spelled):
    """(path, label, class) of each row, as pandas reads the table and sources/README.md numbers the labels."""
    texts = spelled["label"].tolist()
    numbers = pd.to_numeric(spelled["label"], errors="coerce")
    if numbers.notna().all():
        whole = [int(text) if text.lstrip("+-").isdigit() else float(text) for text in texts]
        if all(number == int(number) for number in whole):
            return [(path, int(number), None) for path, number in zip(spelled["path"], whole)]
        codes, values = pd.factorize(numbers, sort=True)
        called = {}
        for code, text in zip(codes, texts):
            called.setdefault(code, text)
        return [(path, int(code), called[code]) for path, code in zip(spelled["path"], codes)]
    codes, names = pd.factorize(spelled["label"].map(lambda text: text.encode()), sort=True)
    return [(path, int(code), names[code].decode()) for path, code in zip(spelled["path"], codes)]


def read(line):
    if "records" not in line:
        return line["error"]
    return [(one["name"], one.get("label"), one.get("class")) for one in line["records"]]


def refused_tables():
    plain = table(INTEGERS)

    def text(frame=plain, **options):
        return frame.to_csv(index=False, **options).encode(options.get("encoding", "utf-8"))

    both = "is a name"
    yield "NaN among numbers", text(table([None] + [1.5] * (ROWS - 1))), "has an empty label"
    yield "NaN among names", text(table([None] + NAMES[1:])), "has an empty label"
    yield "NaN spelled out among numbers", text(table([None] + [1.5] * (ROWS - 1)), na_rep="NaN"), both
    yield "NA among integers", text(table(pd.Series([None] + INTEGERS[1:], dtype="Int64")), na_rep="<NA>"), both
    yield "infinity among numbers", text(table([float("inf")] + [1.5] * (ROWS - 1))), both
    yield "a name among numbers", text(table(["dog"] + INTEGERS[1:])), both
    yield "a number among names", text(table([7] + NAMES[1:])), "is a number"
    yield "no path", text(table(INTEGERS, [None] + PATHS[1:])), "has an empty path"
    yield "numbers without neighbours", text(table([1e300] + [0.5] * (ROWS - 1))), "too large a number"
    yield "fractions of which nothing is said", text(table(FRACTIONS)), "not whole"
    yield "no header", text(header=False), ""
    yield "columns of other names", text(plain.rename(columns={"label": "class"})), ""
    yield "semicolons", text(sep=";"), ""
    yield "tabs", text(sep="\t"), ""
    yield "UTF-16", plain.to_csv(index=False).encode("utf-16"), ""
    yield "no row", text(plain.iloc[:0]), "names no image"
    yield "blanks behind commas", text().replace(b",label", b", label"), ""
    yield "escapes for quotes", text(table(['a "b" c'] * ROWS), doublequote=False, escapechar="\\"), "quote"
    yield "a line cut short", text()[: text().rindex(b",")], "has 1 fields"
    yield "a comma too many", text().replace(b"images", b",images", 1), "fields where the first line has"
    yield "quotes that stay open", text() + b'"images/00.png,3\n', "never closed"
    yield "gzip", gzip.compress(text()), ""
    yield "HTML", plain.to_html().encode(), ""
    yield "JSON", plain.to_json().encode(), ""
    yield "pickle", pd.Series(INTEGERS).to_numpy().dumps(), ""


def main():
    tally = peers.Tally()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_images(folder, set(PATHS) | set(ODD_PATHS))
        sound, refused, classes = {}, {}, set()
        for name, frame in columns():
            for spelling, options in SPELLINGS.items():
                path = folder / f"{name}, {spelling}.csv"
                frame.to_csv(path, **options)
                if spelling == "CR" and name in BARE_LINE_FEEDS:
                    refused[str(path)] = (f"{name}, {spelling}", "fields where the first line has")
                    continue
                # As text: what pandas makes of it as numbers is asked for by name.
                reading = {"encoding": options.get("encoding", "utf-8")}
                if spelling == "CR":
                    reading["lineterminator"] = "\r"
                spelled = pd.read_csv(path, dtype=str, keep_default_na=False, **reading)
                sound[str(path)] = (f"{name}, {spelling}", expected(spelled))
                if has_fractions(spelled):
                    classes.add(str(path))
        for name, data, words in refused_tables():
            path = folder / f"refused-{len(refused)}.csv"
            path.write_bytes(data)
            refused[str(path)] = (name, words)
        named = [f"{path}\tclass" if path in classes else path for path in [*sound, *refused]]
        lines = peers.read_records(named)
    for path, (name, rows) in sound.items():
        tally.expect_equal(name, read(lines[path]), rows)
    for path, (name, words) in refused.items():
        tally.expect_refused(name, lines[path].get("error"), words)
    tally.finish()


if __name__ == "__main__":
    main()
