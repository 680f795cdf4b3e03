"""Reads logs: whole files in one go, or a growing one piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlcast.errors import InputError
from rlcast.importers import tables
from rlcast.importers.collect import Collector
from rlcast.importers.detect import detect
from rlcast.importers.registry import Format, format_named
from rlcast.importers.rows import BrokenLine, LineParser, Options, Point, Report, Row
from rlcast.tables import CurveRows, Table, read_frame, read_table

#: Names of files that say nothing about the run: their folder's name does.
_NAMELESS = {"metrics", "logging", "trainer_state", "log", "train", "console", "stdout", "output", "history"}


@dataclass
class Imported:
    """The curve of one run and what was understood of its log. `points` is empty for a table of curves."""

    rows: CurveRows
    report: Report
    points: list[Point] = field(default_factory=list)
    source: str = ""


class LogReader:
    """Reads one run's log as it grows: lines in, settled points out.

    A point is settled when no later row can change it, so that it can be sent to the service at once.
    After the end, `finish` gives the rest. The first score that appears fixes the score's key.
    Raises `InputError` when the score is not a pass rate.
    """

    def __init__(self, format_name: str, options: Options | None = None) -> None:
        self.format = format_named(format_name)
        if self.format.parser is None:
            raise InputError(f"format {format_name} does not grow by lines; read the whole file", "--format")
        self.run = _Run(self.format, options or Options())
        self._rest = b""

    def feed(self, lines: Iterable[str | bytes]) -> list[Point]:
        """Takes whole lines; the points that they settle."""
        for line in lines:
            self.run.line(line.decode("utf-8", errors="replace") if isinstance(line, bytes) else line)
        return self.run.only().settled()

    def feed_bytes(self, data: bytes) -> list[Point]:
        """Takes the next bytes of the file, cut anywhere; a line counts when its end has come."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return self.feed(lines)

    def finish(self) -> list[Point]:
        """The points that were not settled yet; a last line without an end may be cut and is left out."""
        return self.run.only().settled(closing=True)

    def report(self) -> Report:
        return self.run.report(self.run.only())


class _Run:
    """The rows of one or several runs of one format."""

    def __init__(self, form: Format, options: Options) -> None:
        self.form = form
        self.options = options
        self.parser: LineParser | None = form.parser() if form.parser else None
        self.collectors: dict[str | None, Collector] = {}
        self.n_lines = 0
        self.broken: list[int] = []
        self.n_broken = 0

    def read(self, path: Path) -> None:
        if self.form.rows is not None:
            for row in self.form.rows(path):
                self.add(row)
            return
        for line in self.form.lines(path):
            cut = self.form.cut_at is not None and not line.endswith("\n")
            self.line(line.rpartition(self.form.cut_at or "")[0] if cut else line)

    def line(self, text: str) -> None:
        self.n_lines += 1
        assert self.parser is not None
        try:
            for row in self.parser.rows(text.rstrip("\r\n")):
                self.add(row)
        except BrokenLine:
            self.n_broken += 1
            self.broken = [*self.broken, self.n_lines][:3]
        if self.parser.devices and self.options.devices is None:
            for collector in self.collectors.values():
                collector.devices, collector.devices_from = self.parser.devices, self.parser.devices_from

    def add(self, row: Row) -> None:
        name = None if self.options.name else row.run
        if name not in self.collectors:
            self.collectors[name] = Collector(self.options, self.form.writers)
        self.collectors[name].add(row)

    def only(self) -> Collector:
        """The collector of a log that holds one run."""
        return next(iter(self.collectors.values()), None) or Collector(self.options, self.form.writers)

    def report(self, collector: Collector) -> Report:
        report = collector.report(self.form.title)
        if self.n_broken:
            where = ", ".join(str(line) for line in self.broken) + (", …" if self.n_broken > 3 else "")
            report.notes.append(
                f"{self.n_broken} of {self.n_lines} lines are broken and were left out (line {where})"
            )
        return report


def read_logs(
    paths: Sequence[Path | str], format_name: str = "auto", options: Options | None = None
) -> list[Imported]:
    """Reads the runs of files and folders of any known format.

    Several files make one run when the format says so or `options.name` names it; their order is the
    order of attempts. Raises `InputError` that names file, field and remedy.
    """
    options = options or Options()
    found: list[Imported] = []
    joint: dict[str, _Run] = {}
    for path in map(Path, paths):
        form, files = (format_named(format_name), [path]) if format_name != "auto" else detect(path)
        table = _curves(form, path, options)
        if table is not None:
            found += _of_table(table, form, path)
            continue
        together = form.joint or options.name is not None
        run = joint.setdefault(form.name, _Run(form, options)) if together else _Run(form, options)
        for file in files:
            run.read(file)
        if not together:
            found += _finished(run, default_name(path), str(path))
    for run in joint.values():
        found += _finished(run, default_name(Path(paths[0])), str(paths[0]))
    return _with_distinct_names(found)


def _curves(form: Format, path: Path, options: Options) -> Table | None:
    """The curves of a table that has a compute column (or whose columns the user named)."""
    named = {"x": options.x, "y": options.y, "unit": options.unit, "bounds": (options.low, options.high)}
    if form.name == "csv":
        header, _ = tables.header_of(path)
        return None if _is_log(header, options) else read_table(path, **named)  # type: ignore[arg-type]
    if form.name == "parquet":
        frame = tables.parquet_frame(path)
        header = list(getattr(frame, "column_names", frame.columns))
        if not _is_log(header, options):
            return read_frame(frame, name=path.stem, **named)  # type: ignore[arg-type]
    return None


def _is_log(header: list[str], options: Options) -> bool:
    """A table of training steps; a curve names its compute and its pass rate."""
    curve = tables.is_curve(header) and (options.y is not None or tables.names_score(header))
    return tables.has_steps(header) and options.x is None and not curve


def _of_table(table: Table, form: Format, path: Path) -> list[Imported]:
    report = Report(form.title, notes=table.notes)
    return [Imported(rows, report, source=str(path)) for rows in table.runs.values()]


def _finished(run: _Run, name: str, source: str) -> list[Imported]:
    if not run.collectors:
        raise InputError(
            f"{source} holds no row of a {run.form.title}; check the file, or pass another --format",
            "--format",
        )
    imported = []
    for own, collector in run.collectors.items():
        try:
            points = collector.points()
            rows = _curve_rows(points, collector.unit(points), run.options.name or own or name)
        except InputError as error:
            raise InputError(f"{source}: {error}", error.field) from None
        imported.append(Imported(rows, run.report(collector), points, source))
    return imported


def _curve_rows(points: list[Point], unit: str, name: str) -> CurveRows:
    rows = CurveRows(name, unit, points[0].benchmark)
    more = [u for u in points[0].compute if u != unit and all(u in p.compute for p in points)]
    rows.also = {u: [p.compute[u] for p in points] for u in more}
    for point in points:
        rows.compute.append(point.compute[unit])
        rows.pass_rate.append(point.pass_rate)
        rows.steps.append(point.step)
        rows.n_prompts.append(point.n_prompts)
        rows.n_samples.append(point.n_samples)
        rows.attempts.append(point.attempt)
    return rows


def default_name(path: Path) -> str:
    """The run's name when nothing in the log tells it."""
    path = path.resolve()
    if path.is_dir():
        return path.name
    if "tfevents" in path.name:
        return path.parent.name
    stem = path.name.split(".")[0] if path.suffix == ".gz" else path.stem
    return path.parent.name if stem.lower() in _NAMELESS and path.parent.name else stem


def _with_distinct_names(found: list[Imported]) -> list[Imported]:
    """Logs in different folders keep apart where only their file names name them."""
    sources: dict[str, str] = {}
    for one in found:
        if one.rows.run != default_name(Path(one.source)):
            continue
        name, folder = one.rows.run, Path(one.source).resolve().parent
        while sources.setdefault(name, one.source) != one.source:
            name, folder = f"{folder.name or len(sources)}-{name}", folder.parent
        one.rows.run = name
    return found
