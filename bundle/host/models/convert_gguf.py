"""Dequantises a GGUF file to a safetensors snapshot: ``ENGINE_PYTHON convert_gguf.py FILE OUT``.

Run by the engine's own interpreter, which has torch, transformers and gguf; the tool has not.
The result depends on the file and on the versions of the engine's lock alone.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path


def convert(source: Path, folder: Path) -> None:
    """Write model, configuration, tokenizer and chat template of ``source`` into ``folder``."""
    import gguf  # type: ignore[import-not-found]
    import torch  # type: ignore[import-not-found]
    import transformers  # type: ignore[import-not-found]

    # transformers reads the file three times, and makes the same table of names for every module:
    # two thirds of the time.
    gguf.GGUFReader = functools.cache(gguf.GGUFReader)
    gguf.get_tensor_name_map = functools.cache(gguf.get_tensor_name_map)
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        dtype=torch.bfloat16,
        quantization_config=transformers.GgufConfig(dequantize=True),
        local_files_only=True,
    )
    model.save_pretrained(folder)
    # Said here, since the tokenizer's saved configuration repeats it: the file must not depend on
    # whether the environment happens to be offline.
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        source.parent, gguf_file=source.name, local_files_only=True
    )
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
