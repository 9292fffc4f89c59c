"""The section `actor` of a pretrained Hugging Face model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from transformers import ProcessorMixin

from seqcritic.contracts.parts import ActorSettings
from seqcritic.data.codecs.huggingface import TextForm
from seqcritic.settings.base import Factor, Paths, Section, Size


class LoraSettings(Section):
    """Low-rank adapters (Hu et al. 2022): they are trained, the model's own weights are not."""

    rank: Size = Field(8, description="r of W + α / r · B A, with A [r, inputs] and B [outputs, r]")
    alpha: Factor = Field(16.0, description="α, which scales the adapters")
    dropout: float = Field(0.0, ge=0, lt=1, description="of what the adapters read, where likelihood is learnt from")
    targets: Paths | None = Field(
        None, description="names of the linear layers that get adapters, as q,v; null: those usual for the model"
    )


class HuggingFaceSettings(ActorSettings):
    """A pretrained model, and how texts are given to it."""

    kind: str = "huggingface"
    pretrained: str = Field(description="a folder that save_pretrained has written, or a name of the model hub")
    tokenizer: str | None = Field(None, description="a folder or name of its tokenizer, where that is another")
    template: str | None = Field(
        None, description="how a decoder-only model's prompt is made of a source, as '{source} ='"
    )
    source_prefix: str = Field("", description="text before every source, as 'summarize: ' of T5")
    source_language: str | None = Field(None, description="of models that know several, as eng_Latn of NLLB")
    target_language: str | None = Field(None, description="of models that know several: always the first token")
    gradient_checkpointing: bool = Field(
        False, description="compute each layer's states again in the backward pass instead of keeping them"
    )
    lora: LoraSettings | None = Field(None, description="train low-rank adapters alone; null: all weights")
    freeze: tuple[Literal["encoder", "embeddings"], ...] = Field(
        (), description="parts that are not trained, nor given adapters"
    )
    encoder_cache: Literal["float32", "float16"] | None = Field(
        None, description="keep what a frozen encoder makes of each source on disk, in this precision; null: do not"
    )

    @field_validator("pretrained", "tokenizer")
    @classmethod
    def _from_the_root(cls, value: str | None) -> str | None:
        # The run's folder tells it, and may be read from elsewhere.
        return str(Path(value).resolve()) if value is not None and Path(value).is_dir() else value

    @field_validator("freeze", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value

    def facts(self) -> list[tuple[str, str]]:
        """Return what a model card says of the actor."""
        trained = "all weights" if self.lora is None else f"low-rank adapters of rank {self.lora.rank}, merged"
        frozen = [("frozen", ", ".join(self.freeze))] if self.freeze else []
        return [("fine-tuned from", Path(self.pretrained).name), ("trained", trained), *frozen]


def described(
    model: Any,
    tokenizer: Any,
    form: TextForm,
    lora: LoraSettings | None,
    frozen: tuple[str, ...],
    switches: dict[str, Any],
) -> HuggingFaceSettings | None:
    """Return the section of settings that loads a model again; None for one that was loaded from nowhere."""
    # A processor of Whisper has no place of its own; its tokenizer knows where it came from.
    own = tokenizer.tokenizer if isinstance(tokenizer, ProcessorMixin) else tokenizer
    place, tokenizer_place = model.name_or_path, "" if own is None else own.name_or_path
    if not place or not tokenizer_place:
        return None
    return HuggingFaceSettings.model_validate(
        {
            "pretrained": place,
            "tokenizer": None if tokenizer_place == place else tokenizer_place,
            "template": form.template,
            "source_prefix": form.source_prefix,
            "source_language": form.source_language,
            "target_language": form.target_language,
            "lora": lora,
            "freeze": frozen,
        }
        | switches
    )
