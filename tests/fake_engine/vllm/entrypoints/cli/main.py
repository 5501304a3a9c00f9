"""``vllm serve`` with the faults that VLLM_FAKE names, several joined by commas.

slow: listens after a second. deaf: ignores SIGTERM. dies: ends at start with a known message.
dies-silently: ends at start without one. never: lives, never listens. taken: ends because of its
port, until the file VLLM_FAKE_MARK is there.
dies-mid-bench: ends on the third completion. hangs: answers no completion. errors: answers every
completion with 500. no-stats: no acceptance figures. no-page: no /server_info. bad-page: an error
there. orphan: its child ignores SIGTERM and outlives it. bos: a second start token on the
completions path. strays: a speculative server writes another second token. sure: the two best
tokens lie far apart. mute: refuses log-probabilities. other-template: /tokenize renders another
prompt than the chat.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FAULTS = set(os.environ.get("VLLM_FAKE", "").split(","))
SPECULATIVE = "--speculative-config" in sys.argv
ARGS = sys.argv
PORT = int(ARGS[ARGS.index("--port") + 1])
MARK = os.environ.get("VLLM_FAKE_MARK")
LOCK = threading.Lock()
COUNTS = {"requests": 0, "tokens": 0, "completions": 0}
CHILD = "import signal, sys, time; {}print('core up', flush=True); time.sleep(600)"


def say(text):
    print(f"(APIServer pid={os.getpid()}) INFO 01-01 00:00:00 [fake.py:1] {text}", flush=True)


def metrics():
    n, t = COUNTS["requests"], COUNTS["tokens"]
    label = '{engine="0",model_name="m"}'
    lines = [
        f"vllm:num_requests_running{label} 0.0",
        f"vllm:num_requests_waiting{label} 0.0",
        f"vllm:prompt_tokens_total{label} {10 * n}",
        f"vllm:generation_tokens_total{label} {t}",
        f'vllm:request_success_total{{engine="0",finished_reason="length",model_name="m"}} {n}',
        f"vllm:inter_token_latency_seconds_count{label} {max(0, t - n)}",
        f"vllm:num_preemptions_total{label} 0",
        f"vllm:prefix_cache_queries_total{label} 0",
        f"vllm:prefix_cache_hits_total{label} 0",
        'vllm:cache_config_info{engine="0",kv_cache_size_tokens="4096",block_size="16"} 1.0',
    ]
    if SPECULATIVE:
        lines += [
            f"vllm:spec_decode_num_drafts_total{label} {n}",
            f"vllm:spec_decode_num_draft_tokens_total{label} {2 * n}",
            f"vllm:spec_decode_num_accepted_tokens_total{label} {n}",
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="0"}} {n}',
            'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 0',
        ]
    return "\n".join(lines) + "\n"


def config():
    return {
        "vllm_config": {
            "instance_id": str(time.time()),
            "model_config": {"model": ARGS[2], "enforce_eager": True},
            "scheduler_config": {"async_scheduling": False},
            "cache_config": {"kv_cache_size_tokens": 4096, "kv_cache_max_concurrency": 2.0},
        }
    }


def chat(body):
    text = body["messages"][-1]["content"]
    answer = {
        "choices": [
            {
                "message": {"content": f"echo {text}"},
                "finish_reason": "stop",
                "token_ids": [1, 7, 3] if SPECULATIVE and "strays" in FAULTS else [1, 2, 3],
            }
        ],
        "usage": {"prompt_tokens": len(text), "completion_tokens": 3},
        "prompt_token_ids": tokens(rendered(body)),
        "metrics": None,
    }
    if SPECULATIVE and "no-stats" not in FAULTS:
        answer["metrics"] = {
            "speculative_decoding": {
                "acceptance_histogram": [0, 1, 0],
                "num_spec_steps": 1,
                "num_accepted_draft_tokens": 1,
                "num_draft_tokens": 2,
                "per_step_accepted": [1],
                "per_step_drafted": [2],
            }
        }
    return answer


def tokens(text):
    return [ord(letter) for letter in text]


def rendered(body):
    return f"<user>{body['messages'][0]['content']}<assistant>"


def tokenize(body):
    if "messages" in body:
        return [9] * ("other-template" in FAULTS) + tokens(rendered(body))
    return [0] * ("bos" in FAULTS) + tokens(body["prompt"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        page = self.path.partition("?")[0]
        if page == "/health":
            self.reply(200, b"")
        elif page == "/metrics":
            self.reply(200, metrics().encode())
        elif page == "/v1/models":
            self.reply(200, json.dumps({"data": [{"id": "spec-demo"}]}).encode())
        elif page == "/server_info" and "bad-page" in FAULTS:
            self.reply(500, b"cannot be written as JSON")
        elif page == "/server_info" and "no-page" not in FAULTS:
            self.reply(200, json.dumps(config()).encode())
        else:
            self.reply(404, b"{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/tokenize":
            self.reply(200, json.dumps({"tokens": tokenize(body)}).encode())
        elif self.path == "/v1/chat/completions":
            self.count(3)
            self.reply(200, json.dumps(chat(body)).encode())
        else:
            self.completion(body)

    def completion(self, body):
        COUNTS["completions"] += 1
        if "hangs" in FAULTS:
            time.sleep(600)
        if "dies-mid-bench" in FAULTS and COUNTS["completions"] >= 3:
            print("RuntimeError: the engine core is gone", flush=True)
            os._exit(3)
        if "errors" in FAULTS:
            return self.reply(500, b'{"error": "broken"}')
        if "mute" in FAULTS and "logprobs" in body:
            return self.reply(400, b"log-probabilities are switched off")
        self.count(body["max_tokens"])
        best = {"token_id:2": -0.25, "token_id:7": -4.25 if "sure" in FAULTS else -0.75}
        answer = {"choices": [{"logprobs": {"top_logprobs": [best]}, "prompt": body["prompt"]}]}
        return self.reply(200, json.dumps(answer).encode())

    def count(self, number):
        with LOCK:
            COUNTS["requests"] += 1
            COUNTS["tokens"] += number

    def reply(self, status, content):
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True


def main():
    say("Initializing a V1 LLM engine (v0.0.fake) with config: model='m', enforce_eager=True,")
    if "dies" in FAULTS:
        print("ValueError: prompt_lookup_min=4 must be <= prompt_lookup_max=2", flush=True)
        sys.exit(1)
    if "dies-silently" in FAULTS:
        sys.exit(1)
    if "taken" in FAULTS and not (MARK and Path(MARK).exists()):
        if MARK:
            Path(MARK).touch()
        print("OSError: [Errno 98] Address already in use", flush=True)
        sys.exit(1)
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " if "orphan" in FAULTS else ""
    child = subprocess.Popen([sys.executable, "-c", CHILD.format(ignore)])

    def stop(*_):
        if "deaf" in FAULTS:
            say("no")
            return
        if "orphan" not in FAULTS:
            child.terminate()
            child.wait()
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    if "slow" in FAULTS:
        time.sleep(1)
    while "never" in FAULTS:
        time.sleep(1)
    Server(("127.0.0.1", PORT), Handler).serve_forever()


if __name__ == "__main__":
    main()
