import asyncio
import hashlib
import http.server
import json
import threading

import pytest

from bundle.core.quality_pass import MISSING_STATS, Chat, ChatItem
from bundle.errors import ServerError
from bundle.host import http_client
from bundle.host.http_client import Client, chat_pass, tokenize_all
from bundle.host.ports import free_port
from bundle.host.server import Server
from tests.host.engines import spec

ITEMS = tuple(
    ChatItem(id=f"i{n}", kind="k", task="t", messages=(("user", f"q{n}"),), max_tokens=8)
    for n in range(7)
)


def chat(**changes) -> Chat:
    fields = {
        "model": "m",
        "concurrency": 3,
        "seed": 42,
        "timeout": 5.0,
        "max_tokens": None,
        "template": {},
        "speculative": False,
    }
    return Chat(**{**fields, **changes})


def speculative(folder, *faults):
    plain = spec(folder, *faults)
    return spec(
        folder,
        *faults,
        port=plain.port,
        argv=(*plain.argv, "--speculative-config", "{}"),
    )


def test_replies_in_the_order_of_the_items(tmp_path, monkeypatch):
    # A proxy of the environment must not be asked for loopback.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with Server(spec(tmp_path)) as server:
        replies = chat_pass(server.base_url, ITEMS, chat())
    assert [r.text for r in replies] == [f"echo q{n}" for n in range(7)]
    assert {r.error for r in replies} == {None}
    ids = ",".join(str(ord(letter)) for letter in "<user>q0<assistant>")
    expected = hashlib.sha256(ids.encode()).hexdigest()
    assert replies[0].prompt_sha256 == expected


def test_acceptance_of_every_request(tmp_path):
    with Server(speculative(tmp_path)) as server:
        replies = chat_pass(server.base_url, ITEMS, chat(speculative=True))
    assert {r.speculative.histogram for r in replies} == {(0, 1, 0)}


def test_missing_acceptance_is_an_error(tmp_path):
    with Server(speculative(tmp_path, "no-stats")) as server:
        replies = chat_pass(server.base_url, ITEMS[:1], chat(speculative=True))
    assert replies[0].error == MISSING_STATS


def test_nobody_there():
    base_url = f"http://127.0.0.1:{free_port()}"
    replies = chat_pass(base_url, ITEMS, chat())
    assert len(replies) == 7
    assert all("Connect" in r.error for r in replies)
    with Client(base_url) as client, pytest.raises(ServerError, match="ConnectError"):
        client.get("/v1/models")
    with pytest.raises(ServerError, match="ConnectError"):
        tokenize_all(base_url, [{"prompt": "x"}])


def test_facts_and_metrics(tmp_path):
    with Server(spec(tmp_path, "no-page")) as server, Client(server.base_url) as client:
        assert client.get("/server_info?config_format=json") is None
        assert json.loads(client.get("/v1/models")) == {"data": [{"id": "spec-demo"}]}
        page, snapshot = client.settled_metrics(server.check)
        assert b"vllm:generation_tokens_total" in page
        assert snapshot.idle


def test_token_ids_of_both_paths(tmp_path):
    with Server(spec(tmp_path)) as server:
        bodies = [
            {"messages": [{"role": "user", "content": "a"}]},
            {"prompt": "<user>a<assistant>"},
        ]
        ids = tokenize_all(server.base_url, bodies)
    assert ids[0] == ids[1] == tuple(map(ord, "<user>a<assistant>"))


class Odd(http.server.BaseHTTPRequestHandler):
    """Answers every path with what it names: /500/..., /text/..., /busy/metrics."""

    counter = 0

    def answer(self):
        kind = self.path.split("/")[1]
        status, body = {
            "500": (500, b"broken"),
            "text": (200, b"not json"),
            "busy": (200, b'vllm:num_requests_running{engine="0"} 1.0\n'),
            "moving": (200, b""),
        }.get(kind, (404, b""))
        if kind == "moving":
            Odd.counter += 1
            body = f"vllm:generation_tokens_total {min(Odd.counter, 4)}\n".encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def odd():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def nothing() -> None:
    return None


def test_error_answers(odd):
    replies = chat_pass(f"{odd}/500", ITEMS[:1], chat())
    assert replies[0].error == "HTTP 500: broken"
    assert "JSONDecodeError" in chat_pass(f"{odd}/text", ITEMS[:1], chat())[0].error
    with pytest.raises(ServerError, match="HTTP 500: broken"):
        tokenize_all(f"{odd}/500", [{"prompt": "x"}])
    with pytest.raises(ServerError, match="JSONDecodeError"):
        tokenize_all(f"{odd}/text", [{"prompt": "x"}])
    with Client(f"{odd}/500") as client, pytest.raises(ServerError, match="HTTP 500"):
        client.get("/v1/models")
    with Client(f"{odd}/nothing") as client, pytest.raises(ServerError, match="found none"):
        client.metrics()


def test_metrics_that_never_rest(odd, monkeypatch):
    monkeypatch.setattr(http_client, "SETTLE_SECONDS", 0.3)
    with Client(f"{odd}/busy") as client, pytest.raises(ServerError, match="idle server"):
        client.settled_metrics(nothing)


def test_metrics_that_come_to_rest(odd):
    with Client(f"{odd}/moving") as client:
        _, snapshot = client.settled_metrics(nothing)
    assert snapshot.values["vllm:generation_tokens_total"] == 4


def test_never_more_at_a_time_than_asked():
    running, most = 0, 0

    async def ask(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return number

    numbers = list(range(20))
    assert asyncio.run(http_client._limited(numbers, 4, ask)) == tuple(numbers)
    assert most == 4
