"""@attest.kernel, by which pytest knows a function as a kernel to be checked."""

import functools


class Declared:
    """A function, called as ever, with what @attest.kernel says of it."""

    def __init__(self, function, dtypes, shapes, cases, properties, arguments):
        self.function, self.dtypes, self.shapes = function, dtypes, shapes
        self.cases, self.properties, self.arguments = cases, properties, arguments
        functools.update_wrapper(self, function)

    def __call__(self, *positional, **named):
        return self.function(*positional, **named)


def kernel(function=None, *, dtypes=None, shapes=None, cases=None, properties=None, **arguments):
    """Makes a function a kernel that pytest checks: one test for each property and dtype.

        @attest.kernel(dtypes=["f32", "bf16"])
        def my_attention(q, k, v, mask=None, scale=1.0): ...

        sdpa = attest.kernel(torch.nn.functional.scaled_dot_product_attention)

    dtypes      of which there are tests (default: those of the manifest, or of what is known of the function, else "f32")
    shapes      (batch, heads, kv_heads, M, N, dk) or with dv, of which further cases are drawn, in the place of those that
                models have (default: theirs)
    cases       per property and dtype (default: --attest-cases, else 300; of a function of JAX 20 of four shapes, since JAX
                compiles for each shape anew)
    properties  names, globs allowed (default: all)
    arguments   as attest.check has them

    The function gets q [batch, heads, M, dk], k [batch, kv_heads, N, dk] and v [batch, kv_heads, N, dv], all without a unit,
    and returns [batch, heads, M, dv], in the layout that it is found to have.

    Returns it as an object that is called as it is. The tests run where pytest has the plugin of this package, and are called
    FILE::FUNCTION::PROPERTY[DTYPE]. A wrong argument fails them with one line, that of AttestError. Source: theorems.md (the
    properties), error-bounds.md (what is allowed).
    """
    if function is None:
        return functools.partial(
            kernel, dtypes=dtypes, shapes=shapes, cases=cases, properties=properties, **arguments
        )
    return Declared(function, dtypes, shapes, cases, properties, arguments)
