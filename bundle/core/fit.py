"""Whether a helper belongs to its target, and what both cost: from configuration files alone.

The engine itself checks little of this: it compares the size of the vocabulary for a draft model
and nothing for an EAGLE-3 head, so a wrong helper loads and is hardly ever accepted, or ends the
server minutes later (vLLM 0.32.0, ``config/speculative.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from bundle.core.memory import text_config
from bundle.core.recipe import Group, Recipe

#: Parts of a path that make vLLM 0.32.0 take another method than ``draft_model``.
_TELLING = ("eagle-", "eagle3", "dflash", "dspark")
_MTP_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What a model's configuration files say.

    ``config`` is ``config.json``. ``path`` is what the server gets. ``names`` are what others may
    call it (Hub repository). ``tokenizer_sha256`` is of ``tokenizer.json``. ``weights`` is the
    size of the safetensors files in bytes. The last two are None where there are no such files.
    """

    config: dict[str, Any]
    path: str = ""
    names: tuple[str, ...] = ()
    tokenizer_sha256: str | None = None
    weights: int | None = None


def fit_problems(recipe: Recipe, facts: Mapping[str, ModelFacts]) -> tuple[str, ...]:
    """Why groups of the recipe cannot work, one sentence each; empty when all fit.

    Args:
        recipe: the experiment.
        facts: model key -> facts, for the target and the helpers; a group whose helper is not
            among them is not looked at.
    """
    target = facts["target"]
    found = [f"target: {text}" for text in _context_problems(recipe, target)]
    for group in recipe.groups:
        if group.speculative is not None and group.model in (None, *facts):
            helper = facts[group.model] if group.model is not None else None
            found += [f"group {group.name}: {text}" for text in _group(group, target, helper)]
    return tuple(found)


def _context_problems(recipe: Recipe, target: ModelFacts) -> Iterator[str]:
    """The context asked for is one that the target has positions for."""
    limit = text_config(target.config).get("max_position_embeddings")
    asked = recipe.serve.flags.get("max-model-len")
    if isinstance(limit, int) and isinstance(asked, int) and asked > limit:
        yield f"max-model-len {asked} is above the model's {limit} positions"


def _group(group: Group, target: ModelFacts, helper: ModelFacts | None) -> Iterator[str]:
    assert group.speculative is not None
    method = group.speculative.method
    if method == "mtp":
        yield from _mtp(group.speculative.num_speculative_tokens, target)
    if helper is not None:
        checks = {"draft_model": _draft_model, "eagle3": _eagle3}
        yield from checks.get(method, _eagle)(target, helper)


def _draft_model(target: ModelFacts, helper: ModelFacts) -> Iterator[str]:
    """A draft model has the target's vocabulary, token by token, and a harmless path."""
    if is_eagle3(helper.config):
        yield "the helper is an EAGLE-3 head, not a draft model: use method eagle3"
        return
    yield from _vocabulary(target, helper.config, "draft")
    ours, theirs = target.tokenizer_sha256, helper.tokenizer_sha256
    if ours and theirs and ours != theirs:
        yield (
            f"the draft has another tokenizer.json (sha256 {theirs[:12]}, target {ours[:12]}): its "
            "tokens mean other text"
        )
    telling = [word for word in _TELLING if word in helper.path.lower()]
    if telling:
        yield (
            f"the draft's path {helper.path} has `{telling[0]}` in it, which makes the engine "
            "take it for another method: rename the folder"
        )


def _eagle(target: ModelFacts, helper: ModelFacts) -> Iterator[str]:
    """An EAGLE head works on the target's hidden states and vocabulary."""
    inner = head_config(helper.config)
    yield from _hidden_size(target, inner.get("hidden_size"), "EAGLE head")
    yield from _vocabulary(target, inner, "head")


def _eagle3(target: ModelFacts, helper: ModelFacts) -> Iterator[str]:
    """An EAGLE-3 head was trained for this target: verifier, hidden size, vocabulary, layers."""
    if not is_eagle3(helper.config):
        kind = ", ".join(helper.config.get("architectures") or ["no architecture"])
        yield f"the helper is not an EAGLE-3 head but {kind}"
        return
    inner = head_config(helper.config)
    verifier = verifier_name(helper.config)
    if verifier and target.names and not _same_name(verifier, target.names):
        yield f"the head was trained for {verifier}, the target is {target.names[0]}"
    wanted = helper.config.get("target_hidden_size") or inner.get("target_hidden_size")
    yield from _hidden_size(target, wanted or inner.get("hidden_size"), "EAGLE-3 head")
    yield from _vocabulary(target, inner, "head")
    yield from _draft_vocabulary(target, helper.config)
    yield from _layers(target, helper.config)


def _hidden_size(target: ModelFacts, found: object, what: str) -> Iterator[str]:
    ours = text_config(target.config).get("hidden_size")
    if ours is not None and found is not None and ours != found:
        yield f"the {what} is for hidden size {found}, the target has {ours}"


def _vocabulary(target: ModelFacts, config: Mapping[str, Any], what: str) -> Iterator[str]:
    ours, theirs = (
        text_config(target.config).get("vocab_size"),
        text_config(config).get("vocab_size"),
    )
    if ours is not None and theirs is not None and ours != theirs:
        yield f"the {what} has a vocabulary of {theirs} tokens, the target {ours}"


def _draft_vocabulary(target: ModelFacts, config: Mapping[str, Any]) -> Iterator[str]:
    ours, reduced = text_config(target.config).get("vocab_size"), config.get("draft_vocab_size")
    if isinstance(ours, int) and isinstance(reduced, int) and reduced > ours:
        yield f"the head's draft vocabulary of {reduced} tokens is larger than the target's {ours}"


def _layers(target: ModelFacts, config: Mapping[str, Any]) -> Iterator[str]:
    layers = text_config(target.config).get("num_hidden_layers")
    wanted = [i for i in config.get("eagle_aux_hidden_state_layer_ids") or () if i > (layers or i)]
    if wanted:
        yield f"the head reads layer {max(wanted)}, the target has {layers}"


def _mtp(tokens: int, target: ModelFacts) -> Iterator[str]:
    """Multi-token prediction needs layers that the target ships; k fits their number."""
    layers = mtp_layers(target.config)
    if not layers:
        kind = ", ".join(target.config.get("architectures") or ["no architecture"])
        yield f"method mtp needs a model with MTP layers; the target ({kind}) has none"
    elif tokens > layers and tokens % layers:
        yield f"num_speculative_tokens {tokens} is no multiple of the model's {layers} MTP layers"


def mtp_layers(config: Mapping[str, Any]) -> int:
    """The number of multi-token-prediction layers that a configuration declares; 0 for none."""
    for place in (config, text_config(config), config.get("mtp_config") or {}):
        for key in _MTP_KEYS:
            if isinstance(place.get(key), int):
                return int(place[key])
    return 0


def is_eagle3(config: Mapping[str, Any]) -> bool:
    """Whether a configuration is of an EAGLE-3 head, in its own or the speculators format."""
    if config.get("speculators_model_type") in ("eagle3", "peagle"):
        return True
    names = " ".join(config.get("architectures") or []).lower()
    return "eagle3" in names or config.get("draft_vocab_size") is not None


def head_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a head's configuration that describes its transformer layer."""
    inner = config.get("transformer_layer_config")
    return inner if isinstance(inner, Mapping) else config


def verifier_name(config: Mapping[str, Any]) -> str:
    """The target that a head in the speculators format names; empty for none."""
    verifier = (config.get("speculators_config") or {}).get("verifier") or {}
    return str(verifier.get("name_or_path") or "")


def _same_name(name: str, known: tuple[str, ...]) -> bool:
    """Equal by the last part: heads are also trained from a local folder of that name."""
    return name.rstrip("/").split("/")[-1].lower() in {k.split("/")[-1].lower() for k in known}
