# A law of softmax, which the kernel "fault:last-value-column" breaks.
insert(properties/families/softmax.cc "/// Scores of every kind as a matrix A:" [[
// softmax(A J) = softmax(A) J, J the reversal of the columns.
Verdict reversal(Kernel& kernel, const Case& c) {
  Indices back = all_of(columns_of(c));
  std::ranges::reverse(back);
  return agree({softmax_of(kernel, with_columns(c, back)), softmax_of(kernel, c).columns(back)}, Match::bound);
}

]])
insert(properties/families/softmax.cc [[
};

}  // namespace

std::span<const Property> softmax_properties()]] [[
    {.name = "softmax.trial",
     .statement = "softmax(A J) = softmax(A) J, J the reversal",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = plain,
     .given = scores,
     .check = reversal},
]])
insert(properties/theorems.md "| `softmax.monotone`"
       "| `softmax.trial` **+** | softmax(A J) = softmax(A) J, J the reversal | | bound |\n")
