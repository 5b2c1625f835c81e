"""Uploads by the hub's own client, to a small server on this machine."""

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants

import nas
from command_line import Command
from expect import raises
from nas.exporters import hub_upload
from nas.exporters.hub_upload import check_token, upload
from results.records.row import Row
from tasks.language.hub import reachable
from toy_searches import TOYS

SHOWING = f"{TOYS}:Showing"  # its fit returns the network


@dataclass
class Hub:
    """A server with the parts of the hub's interface that an upload needs.

    Attributes:
        address: Its address.
        files: Contents of uploaded files by repository and name.
        statuses: The beginning of a path -> the status that answers it.
        large: Suffixes of files that are uploaded apart from the commit, as the hub asks for weights.
        silent: Seconds before an answer.
        token: The last token.
    """

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    large: tuple[str, ...] = ()
    silent: float = 0.0
    token: str | None = None
    storage: dict[str, bytes] = field(default_factory=dict)

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        time.sleep(self.silent)
        for beginning, status in self.statuses.items():
            if path.startswith(beginning):
                return status, {"error": "the test says so"}
        if path == "/api/repos/create":
            request = json.loads(body)
            return 200, {"url": f"{self.address}/{request['organization']}/{request['name']}"}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if "/preupload/" in path:
            names = [each["path"] for each in json.loads(body)["files"]]
            modes = {name: "lfs" if name.endswith(self.large) and self.large else "regular" for name in names}
            return 200, {"files": [{"path": name, "uploadMode": modes[name], "shouldIgnore": False} for name in names]}
        if path.endswith("/info/lfs/objects/batch"):
            objects = [
                {**each, "actions": {"upload": {"href": f"{self.address}/storage/{each['oid']}"}}}
                for each in json.loads(body)["objects"]
            ]
            return 200, {"transfer": "basic", "objects": objects}
        if path.startswith("/storage/"):
            self.storage[path.rpartition("/")[2]] = body
            return 200, {}
        if "/commit/" in path:
            return 200, self.commit(path.split("/commit/")[0].removeprefix("/api/models/"), body)
        return 404, {"error": path}

    def commit(self, repository: str, body: bytes) -> dict[str, str]:
        """Store the files of a commit."""
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                self.files[f"{repository}/{value['path']}"] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.files[f"{repository}/{value['path']}"] = self.storage[value["oid"]]
        return {"commitUrl": f"{self.address}/{repository}/commit/0", "commitOid": "0"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            model.token = (self.headers["authorization"] or model.token or "").removeprefix("Bearer ")
            status, answer = model.answer(self.path.partition("?")[0], self._body())
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_PUT = do_GET = do_POST  # noqa: N815

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers["content-length"] or 0))

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    http.handle_error = lambda request, client_address: None  # a client that gave up
    model = Hub(f"http://127.0.0.1:{http.server_port}")
    Thread(target=http.serve_forever, daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", model.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # its server is another
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_test")
    reachable.cache_clear()
    yield model
    http.shutdown()
    http.server_close()
    reachable.cache_clear()


@pytest.fixture
def folder(in_tmp_path: None) -> Path:
    folder = Path("net")
    folder.mkdir()
    (folder / "README.md").write_text("---\ntags: []\n---\n")
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text("weights")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {f"me/{path}": path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("large", [(), (".safetensors",)], ids=["in-the-commit", "apart"])
def test_all_files_are_uploaded_with_the_token(large: tuple[str, ...], server: Hub, folder: Path) -> None:
    server.large = large
    assert upload(folder, "me/net") == f"{server.address}/me/net"
    assert server.files == contents(folder)
    assert len(server.storage) == len(large)
    assert server.token == "hf_of_the_test"


def test_another_upload_replaces_the_files(server: Hub, folder: Path) -> None:
    upload(folder, "me/net")
    (folder / "config.json").write_text('{"new": 1}')
    upload(folder, "me/net")
    assert server.files == contents(folder)


REFUSALS = [
    ({"/api/repos/create": 401}, {"problem": "refused", "status": 401}),
    ({"/api/repos/create": 403, "/api/models/me/net": 404}, {"problem": "refused", "status": 403}),
    ({"/api/models/me/net/preupload": 403}, {"problem": "refused", "status": 403}),
    ({"/api/models/me/net/commit": 401}, {"problem": "refused", "status": 401}),
    ({"/api/models/me/net/commit": 400}, {"problem": "status", "status": 400, "answer": "the test says so"}),
    ({"/api/validate-yaml": 400}, {"problem": "client", "cause": "ValueError"}),
    ({"/storage": 400}, {"problem": "client", "cause": "RuntimeError"}),
]


@pytest.mark.parametrize(("statuses", "fields"), REFUSALS, ids=str)
def test_a_refusal_is_an_error_and_leaves_the_files(
    statuses: dict[str, int], fields: dict[str, Any], server: Hub, folder: Path
) -> None:
    server.statuses, server.large = statuses, (".safetensors",)
    before = contents(folder)
    with raises("unavailable", option="--to", value="me/net", path="net", **fields) as info:
        upload(folder, "me/net")
    assert "hf upload me/net net" in str(info.value)  # a command, which repeats the upload alone
    assert (server.files, contents(folder)) == ({}, before)


def test_a_silent_hub_is_given_up(server: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = huggingface_hub.get_session().timeout
    server.silent = 2.0
    monkeypatch.setattr(hub_upload, "_PATIENCE_S", 0.2)
    with raises("unavailable", option="--to", problem="unreachable", cause="ReadTimeout", path="net"):
        upload(folder, "me/net")
    assert huggingface_hub.get_session().timeout == before


def test_a_silent_hub_is_given_up_after_a_lost_connection(
    server: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_connection(api: Any, *args: Any, **kwargs: Any) -> str:
        huggingface_hub.close_session()  # as the client does
        server.silent = 2.0
        return ""

    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", lose_connection)
    monkeypatch.setattr(hub_upload, "_PATIENCE_S", 0.2)
    with raises("unavailable", option="--to", problem="unreachable", cause="ReadTimeout", path="net"):
        upload(folder, "me/net")


def test_a_bug_keeps_its_kind(server: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.HfApi, "upload_folder", lambda api: None)  # takes no arguments
    with pytest.raises(TypeError):
        upload(folder, "me/net")


def test_an_address_that_does_not_resolve_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    reachable.cache_clear()
    with raises("unavailable", option="--to", problem="unreachable", path="net") as info:
        upload(folder, "me/net")
    assert "cause" not in info.value.fields  # the hub's client would try for half a minute
    reachable.cache_clear()


def test_a_port_that_nobody_serves_is_an_error(server: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with raises("unavailable", option="--to", problem="unreachable", cause="ConnectError", path="net"):
        upload(folder, "me/net")


def without_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)


def test_uploads_need_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    without_token(monkeypatch)
    with raises("missing-value", option="HF_TOKEN"):
        check_token()


def test_progress_bars_stay_as_they_were(server: Hub, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bars: Any = huggingface_hub.utils
    server.large = (".safetensors",)
    assert not bars.are_progress_bars_disabled()
    upload(folder, "me/net")
    assert not bars.are_progress_bars_disabled()
    assert capfd.readouterr() == ("", "")


# -- The command


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Row, tuple[str, ...]]:
    """A row whose network is saved, and the words that find it."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('trained')}/studies.db"
    row = nas.evaluate(SHOWING, preset="smoke", arch="depth=2", study="one", storage=storage)
    return row, ("export", "one", row.architecture.key, "--task", SHOWING, "--storage", storage, "--to", "hub:me/toy")


def test_the_command_uploads_the_graph_of_another_network_with_its_card(
    trained: tuple[Row, tuple[str, ...]], server: Hub, command: Command
) -> None:
    result = command(*trained[1])
    assert result.returncode == 0, result.stderr
    assert f"uploaded: {server.address}/me/toy" in result.stdout
    assert sorted(server.files) == ["me/toy/README.md", "me/toy/network.pt2"]
    card = server.files["me/toy/README.md"].decode()
    assert 'hf_hub_download("me/toy", "network.pt2")' in card
    assert Path("toy/README.md").read_text() == card


def test_an_export_without_upload_loads_no_client() -> None:
    program = "import sys, nas.api.export; sys.exit('huggingface_hub.errors' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_the_command_keeps_the_export_of_a_failed_upload(
    trained: tuple[Row, tuple[str, ...]], server: Hub, command: Command
) -> None:
    server.statuses["/api/repos/create"] = 401
    command(*trained[1]).assert_error("unavailable", problem="refused", status=401, path="toy")
    assert sorted(path.name for path in Path("toy").iterdir()) == ["README.md", "network.pt2"]


def test_mistakes_are_found_before_any_work(
    trained: tuple[Row, tuple[str, ...]], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_token(monkeypatch)
    *words, _ = trained[1]
    command(*trained[1]).assert_error("missing-value", option="HF_TOKEN")
    command(*words, "hub:toy").assert_error("bad-syntax", option="--to", value="toy")
    assert list(Path().iterdir()) == []
