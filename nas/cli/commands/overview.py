"""Commands about what is installed, and about papers."""

from nas.cli import options
from nas.cli.command import Group, command
from nas.environment.paths import DEFAULT_STORE
from nas.report.format import Format
from search_spaces.support.progress import LOADING, status_if_slow


@command("list", Group.START)
def list_installed(
    kind: options.Kind = None, of: options.ListedName = None, storage: options.Storage = DEFAULT_STORE
) -> None:
    """List tasks, spaces, topologies, presets, samplers and studies.

    `nas list presets TASK` lists every value of its presets, `nas list topologies TOPOLOGY` each of its options.
    """
    from nas.cli.lists import print_lists, read_lists

    print_lists(read_lists(kind, of, storage))


@command("reproduce", Group.PAPERS)
def reproduce(
    what: options.What,
    paper: options.Paper = None,
    preset: options.OptionalPreset = None,
    workers: options.Workers = None,
    study: options.Study = None,
    storage: options.Storage = DEFAULT_STORE,
    plot: options.Plot = None,
    format: options.PrintFormat = Format.TABLE,
) -> None:
    """Compare what four papers print with what is measured here; exit status 1 if a count contradicts its label.

    `params` counts networks; `flops`, `tokens`, `memory` and `time` are the other cost columns. `claims` measures what
    needs no training or, with --preset, trains. `figures` trains the linear networks of ANCRe's figure 2 and
    DeepCrossAttention's figure 1 in a minute or two; --plot draws them.
    """
    from nas.cli.papers.request_checks import check_request

    check_request(what, paper, preset, study, plot)
    with status_if_slow(LOADING):
        from nas.cli.papers.reproduce import compare_with_papers, print_comparison
    print_comparison(compare_with_papers(what, paper, preset, workers, study, storage, plot), format)
