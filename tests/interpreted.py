"""Triton's interpreter, which runs the kernels where there is no GPU: one mistake mended, and no work done twice."""

from functools import cache
from importlib.util import find_spec
from typing import Any


@cache
def mend_interpreter() -> None:
    """Change it for all tests of this process. There is no Triton for macOS and Windows, and then nothing is done."""
    if not find_spec("triton"):
        return
    import triton.language as tl
    from triton.runtime import interpreter

    patch_language, patch_tensor = interpreter._patch_lang, interpreter._patch_lang_tensor

    def patch_language_once(function: Any) -> Any:
        """A kernel's functions find the language patched. Triton 3.6 searches all of it again at each call of one."""
        languages = [value for value in function.__globals__.values() if value is tl or value is tl.core]
        if languages and not any(tl.core.is_builtin(language.load) for language in languages):
            return interpreter._LangPatchScope()
        return patch_language(function)

    def patch_tensor_and_index(tensor: Any, scope: Any) -> None:
        """Triton 3.6 makes an array of one value an int, which NumPy 2.4 does no more: a loop's bound could not be an
        argument of a kernel."""
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda value: value.handle.data.item())

    interpreter._patch_lang, interpreter._patch_lang_tensor = patch_language_once, patch_tensor_and_index
