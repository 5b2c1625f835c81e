"""Hooks of MkDocs: pages from outside docs, links to them, equations as MathML, and documentation from code.

`<!-- topology dca -->` or `<!-- task digits-vit -->` in a page is replaced by docstrings, options and presets,
`<!-- presets -->` and `<!-- commands -->` by all of them. A ```math block contains LaTeX, as on code hosts.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable
from html import escape
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]

OUTSIDE = {
    "README.md": "index.md",
    "results/README.md": "reference/results.md",
    "results/tables/README.md": "reference/tables.md",
    "results/tables/published/README.md": "reference/published.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "CITATION.cff": "CITATION.cff",
}
"""File outside of docs -> its path on the site."""

_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")
_MATH = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE_MATH = re.compile(r"\$`([^`]+)`\$")
_SHIM = re.compile(r'<script src="https://[^"]*/iframe-worker/shim"></script>')
_MARKER = re.compile(r"^<!-- (topology|task|commands|presets)(?: (\S+))? -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files from outside docs."""
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links for the site, convert equations and insert documentation from code."""
    here = {to: source for source, to in OUTSIDE.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    markdown = _LINK.sub(lambda link: site_link(link[1], here), markdown)
    markdown = _MARKER.sub(lambda marker: MARKERS[marker[1]](marker[2]), markdown)
    return set_math(markdown)


def site_link(link: str, here: str) -> str:
    """Return a repository link as a link on the site; files that are no page keep their path."""
    target = normpath(join(dirname(here), link))
    target = f"{target}/README.md" if (ROOT / target / "README.md").exists() else target
    on = OUTSIDE.get(target, target.removeprefix("docs/"))
    return relpath(on, dirname(OUTSIDE.get(here, here.removeprefix("docs/"))) or ".")


def set_math(markdown: str) -> str:
    """Convert LaTeX to MathML, which browsers render without a library."""
    markdown = _MATH.sub(lambda match: _displayed(match[1]), markdown)
    return _INLINE_MATH.sub(lambda match: f"<span>{convert(match[1])}</span>", markdown)  # a line may begin with it


def _displayed(lines: str) -> str:
    """Convert each paragraph of LaTeX to a displayed equation."""
    return "\n\n".join(convert(" ".join(part.split()), display="block") for part in lines.strip().split("\n\n"))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Replace the theme's external script by a local one that lets pages opened as files be searched."""
    script = relpath("search-from-file.js", dirname(page.file.dest_uri) or ".")
    return _SHIM.sub(f'<script src="{script}"></script>', output)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Replace the script on the 404 page too."""
    return _SHIM.sub('<script src="/search-from-file.js"></script>', output_content)


def docstring(entry: Any) -> str:
    """Return a docstring as HTML: paragraphs, lists and indented lines."""
    return _paragraphs(inspect.getdoc(entry) or "")


def _paragraphs(text: str) -> str:
    return "\n".join(_paragraph(part) for part in re.split(r"\n\n+", text))


def _paragraph(part: str) -> str:
    if part.startswith("    "):
        return f"<pre><code>{escape(textwrap.dedent(part))}</code></pre>"
    head, *items = re.split(r"^(?:\* |    (?=\w+: ))", part, flags=re.MULTILINE)
    entries = "".join(f"<li>{_words(item)}</li>" for item in items)
    return (f"<p>{_words(head)}</p>" if head.strip() else "") + (f"<ul>{entries}</ul>" if entries else "")


def _words(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split()), quote=False))


def topology(name: str) -> str:
    """Return the documentation of a topology and its options."""
    from search_spaces.support.spec import format_scalar
    from search_spaces.topologies.option_docs import option_descriptions
    from search_spaces.topologies.registry import resolve_topology

    kind, options = resolve_topology(name)
    module = inspect.getmodule(kind)
    parts = [docstring(module), docstring(kind)]
    if texts := option_descriptions(kind):
        values = {option: escape(format_scalar(getattr(options, option))) for option in texts}
        items = [f"<li><code>{option}={values[option]}</code>: {_words(text)}</li>" for option, text in texts.items()]
        parts += [f"<p>Options, as they are by default:</p><ul>{''.join(items)}</ul>"]
    if kind.axes:
        axes = "; ".join(f"{axis} in {', '.join(map(str, values))}" for axis, values in kind.axes.items())
        parts += [f"<p>Spaces that have it search <code>{escape(axes)}</code>.</p>"]
    return _generated(parts)


def task(name: str) -> str:
    """Return the documentation of a task: its metrics, base architecture, presets and audits."""
    from tasks.load import task_class

    kind = task_class(name)
    metrics = ", ".join(f"{metric.name} ({metric.unit}, {metric.direction})" for metric in kind.metrics)
    presets = "".join(f"<li>{escape(preset)}: <code>{escape(str(kind.presets[preset]))}</code></li>" for preset in kind.presets)  # fmt: skip  # noqa: E501
    return _generated([
        docstring(kind),
        f"<p>{escape(audits(name))}</p>",
        f"<p>Version {kind.version}. Metrics: {escape(metrics)}. Base architecture: <code>{kind.base}</code></p>",
        f"<details><summary>Presets</summary><ul>{presets}</ul></details>",
    ])  # fmt: skip


def audits(name: str) -> str:
    """Return the sentence on a task's metrics from the table of audits."""
    lines = re.findall(
        rf"^\| {re.escape(name)} (.+) \|$", (ROOT / "docs" / "studies" / "audits.md").read_text(), re.MULTILINE
    )
    cells = [line.split(" | ") for line in lines]
    metrics = [
        f"{metric} {reliability} ({networks}, levels: {levels})" for metric, networks, reliability, levels, *_ in cells
    ]
    return f"Audited at proxy, reliability: {'; '.join(metrics)}." if metrics else "Not audited."


def presets(_: str | None) -> str:
    """Return every preset of every task, with all values of its recipe."""
    from tasks.load import task_class
    from tasks.recipes.settings import plain_values
    from tasks.registry import TASKS

    parts = []
    for name in filter(TASKS.is_builtin, TASKS.names()):
        recipes = {preset: plain_values(recipe) for preset, recipe in task_class(name).presets.items()}
        fields = dict.fromkeys(field for values in recipes.values() for field in values)
        head = "".join(f"<th>{escape(preset)}</th>" for preset in recipes)
        lines = "".join(
            f"<tr><td><code>{field}</code></td>{_cells(values.get(field, '') for values in recipes.values())}</tr>"
            for field in fields
        )
        table = f"<table><thead><tr><th>field</th>{head}</tr></thead><tbody>{lines}</tbody></table>"
        parts.append(f"## {name}\n\n{_generated([table])}")
    return "\n".join(parts)


def _cells(values: Iterable[Any]) -> str:
    return "".join(f"<td>{escape(str(value))}</td>" for value in values)


def commands(_: str | None) -> str:
    """Return every command with its arguments and options."""
    from typer.main import get_command

    from nas.cli import main

    group = get_command(main.app)
    parts = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        lines = []
        for parameter in command.params:
            is_option = parameter.param_type_name == "option"
            flag = ", ".join(parameter.opts) if is_option else parameter.metavar or parameter.name.upper()
            metavar = "" if not is_option or getattr(parameter, "is_flag", False) else f" {parameter.metavar or ''}"
            default = parameter.default if isinstance(parameter.default, int | float | str) else None
            shown = "" if default in (None, False, "") else f" Default: <code>{escape(str(default))}</code>."
            text = _words(parameter.help or "") + shown
            lines.append(f"<tr><td><code>{escape(flag + metavar)}</code></td><td>{text}</td></tr>")
        table = f"<table><tbody>{''.join(lines)}</tbody></table>"
        parts.append(f"## nas {name}\n\n{_generated([_paragraphs(inspect.cleandoc(command.help or '')), table])}")
    return "\n".join(parts)


def _generated(parts: Iterable[str]) -> str:
    return '<div class="generated">' + "\n".join(part.replace("\n\n", "\n") for part in parts) + "</div>\n"


MARKERS = {"topology": topology, "task": task, "presets": presets, "commands": commands}
"""Marker in a page -> the function that returns its replacement."""
