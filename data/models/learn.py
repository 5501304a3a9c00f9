"""What the two helpers learn from, how they are fed, and what their losses are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from answers import Texts
from net import AUX_LAYERS, Head, Llama
from torch import Tensor

HEAD_STEPS = 4  # one more than k = 3: the head's last position is then trained like the others
STEP_DECAY = 0.8


@dataclass(frozen=True)
class Teacher:
    """The frozen target and what both students learn from."""

    target: Llama
    table: Tensor  # (V, H)
    draft_ids: Tensor  # (Vd,) target ids of the head's reduced vocabulary, rising
    # (3,) puts the three auxiliary states on one scale; folded into fc at the end
    aux_scale: Tensor

    def look(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T) tokens -> final hidden states (B, T, H), scaled auxiliary states (B, T, 3H)."""
        with torch.no_grad():
            hidden, kept = self.target(self.table[tokens], AUX_LAYERS)
            scaled = [k.float() * s for k, s in zip(kept, self.aux_scale, strict=True)]
            return hidden, torch.cat(scaled, -1)

    def choose(self, hidden: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (N, V) where ``w`` (B, T) is not 0, and ``w`` without what the head cannot say."""
        with torch.no_grad():
            wanted = hidden[w > 0] @ self.table.T
            sayable = torch.zeros_like(w)
            sayable[w > 0] = torch.isin(wanted.argmax(-1), self.draft_ids).to(w.dtype)
            return wanted, w * sayable


def imitation(student: Tensor, teacher: Tensor, weight: Tensor) -> Tensor:
    """Mean of cross-entropy to the teacher's distribution and to its best token; logits (N, V)."""
    student, teacher = student.float(), teacher.float()
    total = student.logsumexp(-1)
    soft = total - (teacher.softmax(-1) * student).sum(-1)
    hard = total - student.gather(-1, teacher.argmax(-1, keepdim=True))[:, 0]
    return ((soft + hard) * weight).sum() / (2 * weight.sum().clamp(min=1e-6))


def draft_loss(draft: Llama, teacher: Teacher, tokens: Tensor, wanted: Tensor, w: Tensor) -> Tensor:
    """Loss of the draft; ``wanted`` are the target's logits (N, V) where ``w`` (B, T) is not 0."""
    seen, _ = draft(teacher.table[tokens].float())
    chosen, table = w > 0, teacher.table
    return imitation(seen[chosen].to(table.dtype) @ table.T, wanted, w[chosen])


def ahead(x: Tensor, by: int) -> Tensor:
    """Shift (B, T, ...) so that position i holds what was at i + by; zeros behind."""
    return torch.cat((x[:, by:], torch.zeros_like(x[:, :by])), 1)


def head_steps(head: Head, teacher: Teacher, tokens: Tensor, aux: Tensor) -> Iterator[Tensor]:
    """Normed outputs (B, T, H) of each drafting step, fed with the true tokens."""
    hidden, past = head.fc(aux).float(), []
    for j in range(HEAD_STEPS):
        embedded = teacher.table[ahead(tokens, 1 + j)].float()
        seen, hidden = head.step(embedded, hidden, past)
        yield seen


def head_loss(
    head: Head, teacher: Teacher, tokens: Tensor, hidden: Tensor, aux: Tensor, w: Tensor
) -> Tensor:
    """Loss of the head over its drafting steps; ``w`` is 0 where it cannot say what is right."""
    rows, loss = teacher.table[teacher.draft_ids], torch.zeros((), device=w.device)
    for j, seen in enumerate(head_steps(head, teacher, tokens, aux)):
        later = ahead(w, 1 + j)
        chosen = later > 0
        with torch.no_grad():
            wanted = ahead(hidden, 1 + j)[chosen] @ rows.T
        student = seen[chosen].to(rows.dtype) @ rows.T
        loss = loss + STEP_DECAY**j * imitation(student, wanted, later[chosen])
    return loss


def walk(right: Tensor, k: int) -> tuple[int, list[int]]:
    """Rounds and accepted drafts per position of greedy speculation over one answer.

    Args:
        right: (T, k) whether drafting step j from anchor i names the target's token.
        k: tokens drafted a round.
    """
    place, rounds, accepted = 0, 0, [0] * k
    table = right.tolist()
    while place < len(table):
        run = 0
        while run < k and table[place][run]:
            accepted[run] += 1
            run += 1
        place, rounds = place + run + 1, rounds + 1
    return rounds, accepted


@torch.no_grad()
def acceptance(
    teacher: Teacher, draft: Llama, head: Head, texts: Texts, rows: list[int], device: str
) -> dict[str, list[float]]:
    """Acceptance length and per-position rates of both students (draft k = 4, head k = 3)."""
    counts = {"draft": [0] * 5, "eagle3": [0] * 4}
    for i in rows:
        tokens, weight = (x.to(device) for x in texts.padded([i]))
        _, aux = teacher.look(tokens)
        seen, _ = draft(teacher.table[tokens].float())
        truth, answer = ahead(tokens, 1)[0], weight[0] == 1
        good = (seen.to(teacher.table.dtype) @ teacher.table.T).argmax(-1)[0] == truth
        chain = torch.stack([ahead(good[None], j)[0] for j in range(4)], 1)
        steps = []
        for j, out in enumerate(head_steps(head, teacher, tokens, aux)):
            ids = teacher.draft_ids[
                (out.to(teacher.table.dtype) @ teacher.table[teacher.draft_ids].T).argmax(-1)
            ]
            steps.append(ids[0] == ahead(tokens, 2 + j)[0])
        ready = ahead(answer[None], 1)[0]
        for name, table in (("draft", chain[answer]), ("eagle3", torch.stack(steps[:3], 1)[ready])):
            rounds, accepted = walk(table, len(counts[name]) - 1)
            counts[name] = [x + y for x, y in zip(counts[name], (rounds, *accepted), strict=True)]
    return {name: [1 + sum(c[1:]) / c[0], *(x / c[0] for x in c[1:])] for name, c in counts.items()}
