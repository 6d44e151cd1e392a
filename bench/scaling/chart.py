"""A picture of scaling efficiency over the number of workers, as SVG."""
import html
import math

import reductions
import step

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 60, 50, 180, 50
COLOURS = {"ring": "#b5541c", "tree": "#1c6fb5", "hierarchical": "#2d8a4e", "with failures": "#777777"}


def _lines(c, workers):
    lines = {name: [(p, step.predict(c, p, name).efficiency) for p in workers] for name in reductions.ALGORITHMS}
    lines["with failures"] = [(p, best.efficiency * best.goodput) for p in workers for best in [step.predict(c, p, "best")]]
    return lines


def efficiency(name, c, workers):
    """Returns the picture: one line for each reduction, and that of the best one with restarts and checkpoints."""
    workers = sorted(set(workers))
    span = math.log(max(workers[-1], 2) / workers[0]) or 1.0

    def x(p):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(p / workers[0]) / span

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(value, 1.05) / 1.05)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             f'<text x="{LEFT}" y="24" font-size="14">{html.escape(name)}: scaling efficiency</text>']
    for tenths in range(0, 11, 2):
        level = y(tenths / 10)
        parts.append(f'<line x1="{LEFT}" y1="{level:.1f}" x2="{WIDTH - RIGHT}" y2="{level:.1f}" stroke="#dddddd"/>'
                     f'<text x="{LEFT - 8}" y="{level + 4:.1f}" text-anchor="end">{tenths / 10:.1f}</text>')
    for p in workers:
        parts.append(f'<text x="{x(p):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{p:,}</text>')
    for i, (label, points) in enumerate(_lines(c, workers).items()):
        path = " ".join(f"{x(p):.1f},{y(value):.1f}" for p, value in points)
        dash = ' stroke-dasharray="5 4"' if label == "with failures" else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[label]}" stroke-width="2"{dash}/>')
        parts.append(f'<line x1="{WIDTH - RIGHT + 12}" y1="{TOP + 20 * i}" x2="{WIDTH - RIGHT + 36}" y2="{TOP + 20 * i}" '
                     f'stroke="{COLOURS[label]}" stroke-width="2"{dash}/>'
                     f'<text x="{WIDTH - RIGHT + 42}" y="{TOP + 20 * i + 4}">{label}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">workers</text></svg>')
    return "\n".join(parts) + "\n"
