from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.images import list_images
from tests.images.pictures import write


def table(folder: Path, text: str | bytes) -> Path:
    path = folder / "list.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_order_of_the_lines_is_that_of_the_images(tmp_path: Path) -> None:
    listing = list_images(table(tmp_path, "path,label\nz.png,dog\na.png,cat\n\nm/x.png,dog\n"))
    assert listing.names == ("z.png", "a.png", "m/x.png")
    assert listing.labels == (1, 0, 1)
    assert listing.classes == ("cat", "dog")
    assert listing.parts is None
    assert listing.folder == tmp_path


def test_quotes_a_byte_order_mark_other_columns_and_parts(tmp_path: Path) -> None:
    first = '"猫, ""klein""",train,"A\nB","a, b.png"'
    text = f"label, part ,author,path\r\n{first}\r\ndog,test,C,c.png\r\ndog ,train,C,d.png\r\n"
    listing = list_images(table(tmp_path, text.encode("utf-8-sig")))
    assert listing.names == ("a, b.png", "c.png", "d.png")
    assert listing.classes == ("dog", '猫, "klein"')
    assert listing.labels == (1, 0, 0)
    assert listing.parts == ("train", "test", "train")


def test_a_column_of_other_words_is_not_read(tmp_path: Path) -> None:
    text = "path,label,means,kind\na.png,train,train,test\nb.png,test,ship,test\n"
    assert list_images(table(tmp_path, text)).parts is None


def test_groups_and_the_columns_that_are_not_read(tmp_path: Path) -> None:
    listing = list_images(table(tmp_path, "age,path,label, group\n7,a.png,cat, x \n8,b.png,dog,y\n9,c.png,dog,x\n"))
    assert listing.groups == ("x", "y", "x")
    assert listing.select([2, 1]).groups == ("x", "y")
    assert listing.unread == ("age",)
    assert list_images(table(tmp_path, "path,label\na.png,cat\nb.png,dog\n")).groups is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "first line of .* is ''; it must name the columns path and label"),
        ("path;label\na.png;cat\n", "first line of .* is 'path;label'"),
        ("path,label,label\na.png,cat,dog\n", "each once"),
        ("path,label\n", "has no classes"),
        ("path,label\na.png,cat\nb.png,cat\n", "has one class, 'cat'"),
        ("path,label\na.png\n", "line 2 of .* has 1 values"),
        ("path,label\na.png,cat\n,dog\n", "line 3 of .* has no usable path"),
        ("path,label\na.png, \n", "line 2 of .* has no usable label"),
        ("path,label\na\0.png,cat\n", "line 2 of .* has no usable path"),
        ("path,label,part\na.png,cat,training\n", "line 2 of .*unknown part 'training'; did you mean 'train'"),
        ("path,label,part\na.png,cat,\n", "line 2 of .*unknown part ''"),
        (
            "path, Split ,label\na.png,Train,cat\nb.png,validation,dog\nc.png,Train,dog\n",
            "the column 'Split' of .* has the values Train, validation; if it says which part each image is in, call "
            "it part and its values train, val and test; otherwise remove it",
        ),
        ("path,label,group\na.png,cat,x\nb.png,dog, \n", "line 3 of .* has no usable group; every image needs one"),
        (
            "path,label,part,group\na.png,cat,train,x\nb.png,dog,train,y\nc.png,cat,test,x\n",
            "the group 'x' of .* has images in two parts: a.png in train and c.png in test; put all",
        ),
        ("path,label\na.png,cat\nb.png,dog\na.png,dog\n", "lines 2 and 4 of .* both list 'a.png'"),
        (
            "path,label,part\na.png,cat,train\nb.png,dog,train\nc.png,cow,val\n",
            "'cow' has images in val and none in train",
        ),
        ("path,label,part\na.png,cat,test\nb.png,dog,test\n", "has images in test and none in train"),
        ('path,label\n"a.png,cat\n', "is no CSV file in UTF-8"),
        ("path,label\ncafé.png,cat\n".encode("latin-1"), "is no CSV file in UTF-8"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list_images(table(tmp_path, text))


def test_nothing_outside_of_the_files_folder_is_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "elsewhere" / "x.png")
    folder = tmp_path / "images"
    write(folder / "in" / "b.png")
    (folder / "link.png").symlink_to(outside)
    (folder / "door").symlink_to(outside.parent)
    for path in (
        str(outside),
        "../elsewhere/x.png",
        "in/../../elsewhere/x.png",
        "link.png",
        "door/x.png",
        "..",
        "door/",
    ):
        with pytest.raises(InputError, match=rf"line 3 of .*{path}.* leads to .*outside of"):
            list_images(table(folder, f"path,label\nin/b.png,cat\n{path},dog\n"))


def test_an_absolute_path_within_the_folder_is_read(tmp_path: Path) -> None:
    inside = write(tmp_path / "in" / "b.png")
    (tmp_path / "link.png").symlink_to(inside)
    names = (str(inside), "in/../a.png", "link.png")
    lines = "".join(f"{name},{label}\n" for label, name in enumerate(names))
    assert list_images(table(tmp_path, f"path,label\n{lines}")).names == names
