"""Arrays of any framework as NumPy's, with the name that each dtype has in a safetensors file."""

from attest._errors import AttestError

# The dtype's name in whichever framework: its name in a file, and what carries its bits.
_DTYPES = {
    "float64": ("F64", "float64"),
    "float32": ("F32", "float32"),
    "float16": ("F16", "float16"),
    "bfloat16": ("BF16", "uint16"),
    "float8_e4m3fn": ("F8_E4M3", "uint8"),
    "float8_e5m2": ("F8_E5M2", "uint8"),
    "bool": ("BOOL", "bool"),
    "int8": ("I8", "int8"),
}
CARRIERS = {**dict(_DTYPES.values()), "I32": "int32"}


def word_of(dtype):
    """ "F32" as attest's own words have it, "f32"."""
    return dtype.lower()


def _bits_of_torch(tensor):
    import torch

    tensor = tensor.detach().cpu()
    name = str(tensor.dtype).partition(".")[2]
    carrier = _DTYPES.get(name, (None, None))[1]
    if carrier in ("uint16", "uint8"):
        # NumPy has no such dtype; torch has views of signed bits at the least.
        tensor = tensor.contiguous().view(torch.int16 if carrier == "uint16" else torch.uint8)
    return name, tensor.numpy()


def _bits_of_others(array):
    import numpy

    if type(array).__module__.partition(".")[0] == "cupy":
        array = array.get()
    array = numpy.asarray(array)
    return array.dtype.name, array


def whole_numbers(array, name):
    """As on_host, of lengths, starts and tables: whole numbers of any format, a list of them too."""
    import numpy

    is_torch = type(array).__module__.partition(".")[0] == "torch"
    numbers = _bits_of_torch(array)[1] if is_torch else _bits_of_others(array)[1]
    exact = numpy.asarray(numbers).astype(numpy.int32) if numbers.dtype.kind in "iu" else None
    axes = 2 if name.startswith("page_table") else 1
    if exact is None or numbers.ndim != axes or (exact != numbers).any():
        each = "a row of them" if axes == 2 else "one"
        raise AttestError(f"{name} is {array!r}; it must be whole numbers, {each} for each sequence")
    return "I32", exact


def on_host(array, name):
    """(the dtype's name in a file, an array of what carries its bits). AttestError, one line, for another dtype."""
    if hasattr(array, "attest_bits"):
        return array.attest_bits
    is_torch = type(array).__module__.partition(".")[0] == "torch"
    try:
        dtype, bits = (_bits_of_torch if is_torch else _bits_of_others)(array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise AttestError(f"{name} is a {type(array).__name__}, which is no array: {error}") from None
    if dtype not in _DTYPES:
        raise AttestError(f"{name} is of {dtype}; it must be of one of {', '.join(_DTYPES)}")
    in_file, carrier = _DTYPES[dtype]
    return in_file, bits.view(carrier)
