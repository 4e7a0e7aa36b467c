"""What Amazon Bedrock keeps of a call, and where: the account's retention mode decides."""

from __future__ import annotations

from regions.footprints.draft import Draft
from regions.places import PlaceSet, Region


def kept(draft: Draft, places: PlaceSet, source: Region) -> None:
    """Retention is a function of mode, model, source and destinations; see the sources.

    In the modes that may keep something it depends on the model whether anything is kept; the
    places are those it could be kept in.
    """
    mode, facts = draft.setting("retention_mode"), draft.catalog.bedrock
    if mode == "none":
        statement = "retention mode `none`: nothing is kept; models that must keep refuse to run"
        draft.retains_nothing(statement, facts.sources["retention_none"], facts.checked_on)
    elif mode in ("default", "aws_review"):
        held = places | draft.catalog.atlas.place(source.id)
        statement = f"retention mode `{mode}`: what is kept lies in source or destination"
        draft.retained_in(held, statement, facts.sources["retention_kept"], facts.checked_on)
    elif mode in ("provider_data_share", "inherit"):
        what = f"what `{draft.endpoint.model}` keeps in retention mode `{mode}`, and where"
        draft.retain_unknown(f"{what}; set the account's mode to `none`")
    elif mode is not None:
        draft.retain_unknown(f"retention mode `{mode}`: use none, default or aws_review")
    elif draft.endpoint.retain is None:
        draft.retain_unknown("`retention_mode` of the account in the source region, as `none`")
