"""Makes two model folders that vLLM serves; runs in the vLLM venv (see `parts.py`).

`python models.py FILE.gguf SMOLLM2 TINY`: SMOLLM2 is the GGUF dequantised to bfloat16; TINY is a
Llama of two layers with the same tokenizer and seeded random weights, so that at temperature 0 its
answers never change.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

TINY = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,  # tied, a random model says one token for ever
}


def main() -> None:
    """Write both folders."""
    gguf, real, tiny = map(Path, sys.argv[1:])
    source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    found = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)

    # the loaded model still says it is quantised; a fresh one of the same shape doesn't
    said = {k: v for k, v in found.config.to_dict().items() if k != "quantization_config"}
    smollm2 = LlamaForCausalLM(LlamaConfig(**said)).to(torch.bfloat16)
    smollm2.load_state_dict(found.state_dict())

    torch.manual_seed(0)
    words = {
        key: said[key] for key in ("vocab_size", "bos_token_id", "eos_token_id", "pad_token_id")
    }
    random = LlamaForCausalLM(LlamaConfig(**TINY, **words)).to(torch.bfloat16)

    for model, folder in ((smollm2, real), (random, tiny)):
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)


if __name__ == "__main__":
    main()
