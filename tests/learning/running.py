"""``train`` with its options side by side, as the tests vary them one by one."""

from dataclasses import fields

from elementdp.learning import Checkpoint, Noise, Plan, Trained, train

PLAN = {field.name for field in fields(Plan)}


def trained(model, data, loss, **options) -> Trained:
    """Train with ``privacy``, or with ``sigma``, ``delta`` and ``unit``; whatever belongs to the plan goes there."""
    plan = Plan(**{name: options.pop(name) for name in PLAN & options.keys()})
    noise = {name: options.pop(name) for name in ("sigma", "delta", "unit") if name in options}
    options.setdefault("privacy", None)
    if options["privacy"] is None:
        options["privacy"] = Noise(**noise)
    path, every = options.pop("checkpoint", None), options.pop("checkpoint_every", 50)
    if path is not None:
        path = Checkpoint(path, every)
    return train(model, data, loss=loss, plan=plan, checkpoint=path, **{"progress": False, **options})
