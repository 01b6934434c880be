"""Names of earlier versions work on, say the new name, and are the same class."""

import importlib

import pytest

RENAMED = {
    "sfumato.laws": {"Degrees": "DegreeNoiseLaw", "Term": "SumTerm"},
    "sfumato.mechanisms": {"CubeNoise": "LInfKNorm", "NoisyScale": "NoisyLocalSensitivity"},
    "sfumato.mechanisms.matrix": {"Certificate": "OptimalityGap", "Stream": "BufferedStream"},
    "sfumato.tables": {"FoundKeys": "PartitionSelection"},
}


@pytest.mark.parametrize(
    ("package", "old", "new"), [(package, *names) for package, some in RENAMED.items() for names in some.items()]
)
def test_a_renamed_class_is_found_by_its_old_name(package: str, old: str, new: str) -> None:
    module = importlib.import_module(package)
    with pytest.warns(DeprecationWarning, match=new):
        found = getattr(module, old)
    assert found is getattr(module, new)
    assert old not in module.__all__
