"""A check of our own, beside those of schemathesis: see `appendTrades` in schemathesis.toml."""

import schemathesis


@schemathesis.check
def whole_number_spelling(ctx, response, case):
    """A trade that is valid by its schema is refused for two reasons alone: a `qty` such as 419.0, or
    an `Idempotency-Key` that came before with another body."""
    if response.status_code != 422 or not case.meta.generation.mode.is_positive:
        return
    problem = response.json()
    if problem["type"].endswith("#idempotency-key-reused"):
        return
    assert "errorsOmitted" not in problem, problem
    for error in problem["errors"]:
        value = case.body
        for part in error["pointer"].split("/")[1:]:
            value = value[int(part)] if isinstance(value, list) else value[part]
        assert error["pointer"].endswith("/qty") and isinstance(value, float), (error, value)
