import hashlib

import msgspec
import pytest

from bundle.core import bag
from bundle.core.manifest import render_manifest

PAYLOAD = {"data/bundle.json": b"{}", "data/runs/1/log": b"ready\n"}


def digests(data, algorithms=("sha256",)):
    return {name: hashlib.new(name, data).hexdigest() for name in algorithms}


def manifest(files, algorithm="sha256"):
    return render_manifest({n: hashlib.new(algorithm, d).hexdigest() for n, d in files.items()})


def tags_for(payload):
    info = bag.bag_info(
        payload={n: len(d) for n, d in payload.items()}, date="2024-05-01", fields={}
    )
    tags = {
        "bagit.txt": bag.BAGIT_TXT.encode(),
        "bag-info.txt": info.encode(),
        "manifest-sha256.txt": manifest(payload).encode(),
    }
    return {**tags, "tagmanifest-sha256.txt": manifest(tags).encode()}


def listing(files, *, folders=("data", "data/runs", "data/runs/1"), others=None, name=None):
    algorithms = bag.algorithms_needed(files)
    found = {path: digests(data, algorithms) for path, data in files.items()}
    tag = found.get(bag.TAGMANIFEST, {}).get("sha256", "")
    return bag.Listing(
        name=name or f"tiny-{bag.bundle_id(tag)}",
        sizes={path: len(data) for path, data in files.items()},
        folders=folders,
        others=others or {},
        texts={path: data.decode() for path, data in files.items() if "/" not in path},
        digests=found,
    )


def good():
    return {**PAYLOAD, **tags_for(PAYLOAD)}


def resealed(files):
    """All sha256 tag manifests made anew over the files as they are."""
    tags = {n: d for n, d in files.items() if not n.startswith(("data/", "tagmanifest-"))}
    return {**files, "tagmanifest-sha256.txt": manifest(tags).encode()}


def test_a_good_bag_has_no_problems():
    assert bag.check_bag(listing(good())) == ()


def test_further_manifests_that_agree_are_accepted():
    files = good()
    files["manifest-sha512.txt"] = manifest(PAYLOAD, "sha512").encode()
    files = resealed(files)
    tags = {n: d for n, d in files.items() if not n.startswith(("data/", "tagmanifest-"))}
    files["tagmanifest-md5.txt"] = manifest(tags, "md5").encode()
    assert bag.check_bag(listing(files)) == ()


def edited(name, data):
    return lambda files: {**files, name: data}


def without(name):
    return lambda files: {path: data for path, data in files.items() if path != name}


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (edited("data/bundle.json", b"[]"), "data/bundle.json: sha256 is"),
        (edited("data/new", b""), "data/new: is not listed in manifest-sha256.txt"),
        (without("data/bundle.json"), "data/bundle.json: manifest-sha256.txt lists it, but"),
        (without("tagmanifest-sha256.txt"), "tagmanifest-sha256.txt: is missing"),
        (without("manifest-sha256.txt"), "manifest-sha256.txt: is missing"),
        (without("bagit.txt"), "bagit.txt: expected exactly"),
        (edited("bagit.txt", b"BagIt-Version: 0.97\n"), "bagit.txt: expected exactly"),
        (edited("bag-info.txt", b"Payload-Oxum: 1.1\n"), "bag-info.txt: expected one Payload-Oxum"),
        (without("bag-info.txt"), "bag-info.txt: expected one Payload-Oxum of 8.2, found none"),
        (
            edited("bag-info.txt", b"Payload-Oxum: 8.2\npayload-oxum: 9.9\n"),
            "bag-info.txt: expected one Payload-Oxum",
        ),
        (edited("fetch.txt", b"http://x 1 data/y\n"), "fetch.txt: a bundle is complete"),
        (edited("extra.txt", b"x"), "extra.txt: a file that does not belong"),
        (edited("extra/x.txt", b"x"), "extra/x.txt: a file that does not belong"),
        (edited("manifest-crc32.txt", b""), "manifest-crc32.txt: a digest that cannot"),
        (edited("manifest-sha512.txt", b""), "data/bundle.json: is not listed in manifest-sha512"),
        (edited("manifest-sha256.txt", b"oops\n"), "manifest-sha256.txt: line 1"),
    ],
)
def test_each_rule_names_what_is_wrong(edit, problem):
    files = resealed(edit(good()))
    if problem.startswith("tagmanifest-sha256.txt: is missing"):
        files = edit(good())
    found = bag.check_bag(listing(files))
    assert any(sentence.startswith(problem) for sentence in found), found


def test_an_edited_tag_file_is_seen_by_the_tagmanifest():
    files = {**good(), "bag-info.txt": good()["bag-info.txt"] + b"X: y\n"}
    assert any("bag-info.txt: sha256 is" in text for text in bag.check_bag(listing(files)))


def test_a_tagmanifest_may_not_list_payload_or_leave_a_tag_file_out():
    files = good()
    files["tagmanifest-sha256.txt"] = manifest({"data/bundle.json": b"{}"}).encode()
    found = bag.check_bag(listing(files))
    assert "data/bundle.json: tagmanifest-sha256.txt lists it, but it is not there" in found
    assert "bagit.txt: is not listed in tagmanifest-sha256.txt" in found


def test_names_are_judged_before_anything_else():
    files = {**good(), "data/a\nb": b"x", "DATA": b"x"}
    found = bag.check_bag(listing(files))
    assert found == (
        "'data/a\\nb': holds '\\n', which tools read differently",
        "data: differs from DATA only in case",
    )


def test_links_and_special_files_are_refused():
    found = bag.check_bag(listing(good(), others={"data/link": "link"}))
    assert found == ("'data/link': is a link",)


def test_an_empty_folder_is_extra():
    found = bag.check_bag(listing(good(), folders=("data", "data/empty")))
    assert found == ("data/empty: an empty folder",)


def test_an_empty_payload_is_no_bundle():
    files = tags_for({})
    assert "data: the payload is empty" in bag.check_bag(listing(files, folders=()))


def test_a_folder_under_another_name_is_noticed():
    (problem,) = bag.check_bag(listing(good(), name="tiny-0123456789ab"))
    assert problem.startswith("the folder is named 'tiny-0123456789ab', but the id")


def test_tag_files_that_are_not_text_are_named():
    whole = listing(good())
    broken = msgspec.structs.replace(whole, texts={**whole.texts, "manifest-sha256.txt": None})
    assert "manifest-sha256.txt: is not UTF-8 text, or too long" in bag.check_bag(broken)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (2_500_000, "2.5 MB"),
        (4 * 10**9, "4.0 GB"),
        (3 * 10**12, "3.0 TB"),
    ],
)
def test_sizes_for_people(count, text):
    assert bag.human_size(count) == text


@pytest.mark.parametrize("field", [{"Name": "two\nlines"}, {"Na me": "x"}])
def test_bag_info_stays_on_one_line_a_field(field):
    with pytest.raises(ValueError, match="cannot hold"):
        bag.bag_info(payload={}, date="2024-05-01", fields=field)
