"""How objects show themselves: in a line, and as HTML in notebooks."""

import math
import re
from html import escape

_STAGE = re.compile(r"(?P<name>[\w.]+)\((?P<options>.*)\)(?:\s+\[(?P<note>.*)\])?", re.DOTALL)
_MAX_ROWS = 50  # epochs of a table
_WIDTH, _HEIGHT, _MARGIN = 260, 120, 6  # of a curve, in pixels
_OF_RUN = {"steps", "seconds", "examples_per_second", "input_stall_fraction", "exposed_copy_fraction",
           "device_idle_fraction", "learning_rate", "gradient_norm"}  # what a history has beside loss and metrics
_CURVES = (("training", "#1f77b4"), ("validation", "#ff7f0e"))


def counted(count, one, many=None):
    """"1 epoch", "12,000 records", "3 batches"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def printable(text):
    """The text without what a terminal would obey or a reader would not see: "\\x1b", "\\n", "\\u202e" in its place."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape", "replace").decode() for letter in text)


def fields_text(fields):
    """"image: float32 (3, 32, 32), label: int64 ()"."""
    return ", ".join(f"{printable(field.name)}: {'encoded image' if field.encoded else f'{field.dtype} {field.shape}'}"
                     for field in fields.values())


def number_text(value):
    """At least four digits that count: "0.4021", "12.50", "81,233", "5"."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:#.4g}" if abs(value) >= 1e-3 else f"{value:.3e}"


def table_html(head, rows):
    """Cells are plain text."""
    def row(cells, tag):
        return "<tr>" + "".join(f'<{tag} style="text-align:left">{escape(str(cell))}</{tag}>' for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


# ------------------------------------------------------------------------------------------------------- plans


def plan_html(title, plan):
    """A stage a row. `plan` is what explain() says."""
    rows = [_stage_cells(line.strip()) for line in plan.splitlines() if line.strip()]
    return f"<div><code>{escape(title)}</code>{table_html(('stage', 'options', ''), rows)}</div>"


def _stage_cells(line):
    if line.startswith("->"):
        name, _, what = line[2:].strip().partition(" ")
        return f"\N{RIGHTWARDS ARROW} {name}", what, ""
    found = _STAGE.fullmatch(line)
    return (found["name"], found["options"], found["note"] or "") if found else (line, "", "")


# ------------------------------------------------------------------------------------------------------- histories


def history_text(history):
    """The last value of each list."""
    names = _in_order(history)
    last = ", ".join(f"{name} {number_text(history[name][-1])}" for name in names if history[name])
    return f"<headrace.train.History of {counted(_epochs_of(history), 'epoch')}{': ' if last else ''}{last}>"


def _epochs_of(history):
    return max((len(values) for values in history.values()), default=0)


def history_html(history):
    """Small curves of loss and metrics, then a table of epochs."""
    epochs = _epochs_of(history)
    names = _in_order(history)
    charts = "".join(_chart_html(history, name) for name in _trained(history))
    first = max(0, epochs - _MAX_ROWS)
    rows = [(epoch + 1, *(number_text(history[name][epoch]) if epoch < len(history[name]) else "" for name in names))
            for epoch in range(first, epochs)]
    note = f"<p>The last {_MAX_ROWS} of {epochs} epochs.</p>" if first else ""
    return f"<div>{charts}{note}{table_html(('epoch', *names), rows)}</div>"


def _trained(history):
    """The loss and the metrics, without their validation."""
    names = [name for name in history if name not in _OF_RUN and not name.startswith("val_")]
    return sorted(names, key=lambda name: name != "loss")


def _in_order(history):
    """Loss and metrics, each before its validation; what was measured of the run follows."""
    pairs = [name for one in _trained(history) for name in (one, f"val_{one}") if name in history]
    return pairs + [name for name in history if name not in pairs]


def _chart_html(history, name):
    """One metric over the epochs; empty where fewer than two of its values can be drawn."""
    curves = [history[key] for key in (name, f"val_{name}") if key in history]
    drawn = [value for curve in curves for value in curve if math.isfinite(value)]
    if len(drawn) < 2 or max(map(len, curves)) < 2:
        return ""
    low, high = min(drawn), max(drawn)
    across = (_WIDTH - 2 * _MARGIN) / (max(map(len, curves)) - 1)
    up = (_HEIGHT - 2 * _MARGIN) / (high - low or 1)
    lines = ""
    for curve, (_, colour) in zip(curves, _CURVES):
        points = " ".join(f"{_MARGIN + epoch * across:.1f},{_HEIGHT - _MARGIN - (value - low) * up:.1f}"
                          for epoch, value in enumerate(curve) if math.isfinite(value))
        lines += f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    key = ", ".join(f'<span style="color:{colour}">{which}</span>' for which, colour in _CURVES[:len(curves)])
    caption = f"{escape(name)}, {number_text(low)} to {number_text(high)}: {key}"
    return (f'<figure style="display:inline-block;margin:0 1em 0 0"><svg width="{_WIDTH}" height="{_HEIGHT}" role="img">'
            f'{lines}</svg><figcaption>{caption}</figcaption></figure>')
