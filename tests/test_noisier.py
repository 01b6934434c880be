"""The hunt for tests that hang on a draw does draw wider."""

import os
import subprocess
import sys

import pytest

ASKED = """
import tests.noisier
from sfumato.noise import discrete_gaussian, discrete_laplace, geometric, rounded_gaussian
for draw, said in ((discrete_laplace, {"scale": 1}), (geometric, {"scale": 1}),
                   (discrete_gaussian, {"sigma_squared": 1}), (rounded_gaussian, {"sigma": 1})):
    print(abs(draw(size=4000, **said)).mean() > 30)
"""


@pytest.mark.alpha(1e-12)
@pytest.mark.parametrize(("times", "told"), [("100", "True"), ("", "False")])
def test_noise_is_wider_where_it_is_asked_for(times: str, told: str) -> None:
    """Four means of 4,000 absolute values about 80 to 100 at a hundred times the scale, and about 1 without."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED], env=os.environ | {"SFUMATO_NOISIER": times}, capture_output=True, check=True
    )
    assert done.stdout.decode().split() == [told] * 4
