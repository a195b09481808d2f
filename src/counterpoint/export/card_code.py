"""The lines of code in a model card: from a picture file to its class, with the exported file alone."""

_PICTURE = """\
picture = ImageOps.exif_transpose(Image.open("photo.jpg")).convert("{mode}")  # upright
picture = picture.resize([{size} * side // min(picture.size) for side in picture.size], Image.Resampling.BICUBIC)
left, top = (round((side - {size}) / 2) for side in picture.size)  # the square in the middle
picture = picture.crop((left, top, left + {size}, top + {size}))
images = np.asarray(picture).reshape(1, {size}, {size}, {channels})"""
"""What `counterpoint.images.decode` does with a picture of eight bits per channel that is not transparent."""
_MODES = {1: "L", 3: "RGB"}
_OTHER_IMAGES = "images = np.zeros((1, {height}, {width}, {channels}), dtype=np.uint8)  # yours here"
_CODE = {
    "onnx": """\
import json
import numpy as np, onnxruntime
from PIL import Image, ImageOps

{images}
session = onnxruntime.InferenceSession("{file}")
probs, members = session.run(["probabilities", "members"], {{"images": images}})
classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
print(classes[probs[0].argmax()], probs[0].max())""",
    "pt2": """\
import json
import numpy as np, torch
from PIL import Image, ImageOps

{images}
facts = {{"counterpoint.json": ""}}
network = torch.export.load("{file}", extra_files=facts).module()
probs, members = network(torch.tensor(images))
classes = json.loads(json.loads(facts["counterpoint.json"])["classes"])
print(classes[probs[0].argmax()], probs[0].max().item())""",
}


def example(file_name: str, height: int, width: int, channels: int) -> str:
    """Code that predicts as `counterpoint predict` does. Where `predict` takes no pictures, it is given pixels."""
    takes_pictures = height == width and channels in _MODES
    images = _PICTURE if takes_pictures else _OTHER_IMAGES
    sizes = {"size": height, "height": height, "width": width, "channels": channels, "mode": _MODES.get(channels)}
    return _CODE[file_name.rpartition(".")[2].lower()].format(images=images.format(**sizes), file=file_name)
