"""The study of clipping and noise as a regulariser reports both losses, with and without them."""

import pytest

from examples.regulariser import regulariser_study
from sfumato.errors import InvalidInput
from tests import parts


@pytest.mark.claim("S3-11")
def test_both_losses_are_reported_with_and_without_clipping_and_noise() -> None:
    study = regulariser_study(seed=1, runs=3)
    plain, clipped, noisy = study.arms
    assert [arm.name for arm in study.arms] == ["plain", "clipped", "clipped and noisy"]
    assert plain.train_loss < 0.1 < clipped.train_loss, "the plain model learns the training records by heart"
    assert plain.train_loss < noisy.train_loss
    assert clipped.test_loss < plain.test_loss, "on these data the loss on new records falls"
    assert noisy.test_loss < plain.test_loss
    assert noisy.train_loss != clipped.train_loss, "what is reported as noisy was trained with noise"
    for arm in study.arms:
        assert arm.train_loss < arm.test_loss
        assert f"{arm.train_loss:.3f}" in str(study)
        assert f"{arm.test_loss:.3f}" in str(study)
    assert "not a guarantee" in str(study)
    assert {(row["training"], row["of"]) for row in study.rows()} == {
        (arm.name, of) for arm in study.arms for of in ("train", "test")
    }


@pytest.mark.claim("S3-11")
def test_noise_beyond_reason_teaches_nothing() -> None:
    study = regulariser_study(seed=1, runs=2, records=50, features=100, noise=1000)
    assert study.arms[2].test_loss > study.arms[1].test_loss


def test_the_picture_shows_both_losses() -> None:
    parts.package("altair")
    drawn = regulariser_study(seed=1, runs=2, records=20, features=40, steps=5).plot().to_dict()
    assert len(drawn["data"]["values"]) == 6


def test_a_study_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput):
        regulariser_study(seed=1, runs=1)
    with pytest.raises(InvalidInput):
        regulariser_study(seed=1, clip=0)
