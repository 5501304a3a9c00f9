"""Train the draft model and the EAGLE-3 head of the CPU demonstration.

    python train.py --target SNAPSHOT --out FOLDER --device cuda

The target answers seeded prompts greedily (``answers.py``), then both helpers learn its next-token
distribution: the draft as a plain language model, the head with training-time test over four
drafting steps. Embedding and output rows are the target's own and are not trained, so the two files
written hold only the layers in between. Everything is seeded; another device rounds differently.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from answers import Texts, collect, render, say
from learn import Teacher, acceptance, draft_loss, head_loss
from net import AUX_LAYERS, Head, Llama, load_target, new_draft, new_head
from prompts import training_prompts
from safetensors.torch import save_file
from torch import Tensor, nn


def batches(texts: Texts, rows: list[int], size: int, rng: random.Random) -> Iterator[list[int]]:
    """Endless shuffled batches of at most ``size`` padded tokens, alike in length."""
    lengths = texts.edges.diff().tolist()
    while True:
        rng.shuffle(rows)
        groups: list[list[int]] = []
        for a in range(0, len(rows), 4096):
            group: list[int] = []
            for i in sorted(rows[a : a + 4096], key=lengths.__getitem__):
                if group and (len(group) + 1) * lengths[i] > size:
                    groups.append(group)
                    group = []
                group.append(i)
            groups.append(group)
        rng.shuffle(groups)
        yield from groups


def optimiser(model: nn.Module, rate: float, steps: int) -> tuple[torch.optim.AdamW, object]:
    """AdamW with a warm-up and a cosine to a twentieth."""
    adam = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    warm = max(1, min(200, steps // 10))
    up = torch.optim.lr_scheduler.LinearLR(adam, 0.02, total_iters=warm)
    down = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps - warm, eta_min=rate / 20)
    return adam, torch.optim.lr_scheduler.SequentialLR(adam, [up, down], milestones=[warm])


def train(
    teacher: Teacher, draft: Llama, head: Head, texts: Texts, rows: list[int], a: argparse.Namespace
) -> None:
    """Both students over the same batches, each with its own optimiser."""
    students = (draft, head)
    tools = [optimiser(m, a.rate, a.steps) for m in students]
    rng = random.Random(a.seed)  # noqa: S311 (a reproducible order is the point)
    source, begun, seen = batches(texts, rows, a.batch_tokens, rng), time.time(), 0
    for step in range(1, a.steps + 1):
        tokens, weight = (x.to(a.device) for x in texts.padded(next(source)))
        hidden, aux = teacher.look(tokens)
        wanted, sayable = teacher.choose(hidden, weight)
        losses = []
        for model, (adam, schedule) in zip(students, tools, strict=True):
            with torch.autocast(a.device, torch.bfloat16, enabled=a.bf16):
                if model is draft:
                    loss = draft_loss(draft, teacher, tokens, wanted, weight)
                else:
                    loss = head_loss(head, teacher, tokens, hidden, aux, sayable)
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            schedule.step()
            losses.append(loss.detach())
        seen += tokens.numel()
        if step % a.log_every == 0 or step == a.steps:
            rate = seen / (time.time() - begun)
            say(f"step {step} draft {losses[0]:.3f} head {losses[1]:.3f} {rate:.0f} tok/s")


def prepare(a: argparse.Namespace) -> tuple[Teacher, Texts, list[str]]:
    """Target, answers (read from ``--answers`` if they are there) and the kind of each prompt."""
    target, table = load_target(a.target, a.device, torch.bfloat16 if a.bf16 else torch.float32)
    pairs = training_prompts(a.seed, a.code, a.chat)
    if a.answers and a.answers.exists():
        texts = Texts.load(a.answers)
    else:
        end = json.loads((a.target / "config.json").read_text(encoding="utf-8"))["eos_token_id"]
        ids = render(a.target, [p for _, p in pairs])
        texts = collect(target, table, ids, a.answer_tokens, a.rows, end)
        if a.answers:
            texts.save(a.answers)
    ids = frequent(texts, a.draft_vocab, target.shape.vocab).to(a.device)
    plain = Teacher(target, table, ids, torch.ones(len(AUX_LAYERS), device=a.device))
    _, aux = plain.look(texts.padded(list(range(8)))[0].to(a.device))
    # The first position is left out: the attention sink, out of all proportion.
    power = aux.unflatten(-1, (len(AUX_LAYERS), -1))[:, 1:].square().mean((0, 1, 3))
    return Teacher(target, table, ids, power.rsqrt()), texts, [kind for kind, _ in pairs]


def frequent(texts: Texts, size: int, vocab: int) -> Tensor:
    """The ``size`` token ids seen most often in the answers, rising; ties go to the lower id."""
    spans = zip(texts.edges[:-1] + texts.starts, texts.edges[1:], strict=True)
    counts = torch.cat([texts.tokens[a:b] for a, b in spans]).long().bincount(minlength=vocab)
    common = counts.argsort(descending=True, stable=True)[:size]
    share = counts[common].sum() / counts.sum()
    say(f"{len(texts)} sequences, {len(texts.tokens)} tokens, draft vocabulary covers {share:.4f}")
    return common.sort().values


def store(teacher: Teacher, draft: Llama, head: Head, out: Path) -> None:
    """Write what was trained, in bfloat16: ``draft.safetensors`` and ``eagle3.safetensors``."""
    out.mkdir(parents=True, exist_ok=True)
    layers = {f"model.{k}": v for k, v in draft.state_dict().items()}
    learned = dict(head.state_dict())
    scale = teacher.aux_scale.repeat_interleave(head.shape.hidden)
    learned["fc.weight"] = learned["fc.weight"] * scale
    for name, weights in (("draft", layers), ("eagle3", learned)):
        tensors = {k: v.to("cpu", torch.bfloat16).contiguous() for k, v in weights.items()}
        if name == "eagle3":
            ids = teacher.draft_ids.cpu()
            tensors["d2t"] = ids - torch.arange(len(ids))  # offsets, as EAGLE-3 files have them
        save_file(tensors, out / f"{name}.safetensors", {"format": "pt"})


def arguments() -> argparse.Namespace:
    """The command line; the defaults made the files beside this script."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--target", type=Path, required=True, help="snapshot folder of SmolLM2-135M")
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--answers", type=Path, help="keep the answers here, or read them")
    p.add_argument("--device", default="cpu")
    p.add_argument("--bf16", action="store_true", help="compute in bfloat16")
    for name, value in (
        ("seed", 20), ("code", 10000), ("chat", 18000), ("answer-tokens", 192), ("rows", 4096),
        ("steps", 1400), ("batch-tokens", 16384), ("draft-layers", 2), ("draft-inner", 512),
        ("head-inner", 1024), ("draft-vocab", 8192), ("held-out", 200), ("log-every", 50),
    ):  # fmt: skip
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--rate", type=float, default=2e-3)
    return p.parse_args()


def main() -> None:
    """Answers, training, acceptance on prompts held out, the two files."""
    a = arguments()
    torch.manual_seed(a.seed)
    begun = time.time()
    teacher, texts, kinds = prepare(a)
    say(f"prepared in {time.time() - begun:.1f} s")
    draft = new_draft(teacher.target.shape, a.draft_layers, a.draft_inner).to(a.device)
    head = new_head(teacher.target.shape, a.head_inner).to(a.device)
    train(teacher, draft, head, texts, list(range(a.held_out, len(texts))), a)
    for kind in ("code", "chat"):
        rows = [i for i in range(a.held_out) if kinds[i] == kind]
        found = acceptance(teacher, draft, head, texts, rows, a.device)
        say(f"{kind} { ({n: [round(x, 3) for x in v] for n, v in found.items()}) }")
    store(teacher, draft, head, a.out)
    say(f"done in {time.time() - begun:.1f} s")


if __name__ == "__main__":
    main()
