// Kernels that are right but for where keys and values lie in a cache: in pages, or in rows that an index names.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/memory.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

bool has_pages(const Case& c) {
  return c[Slot::page_table].present();
}
bool has_rows(const Case& c) {
  return c[Slot::cache_index].present();
}

/// What memory holds, read by other tables or lengths; new keys are there.
Spoilt::Fault memory_read(std::function<void(Case& laid_out)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (!has_pages(c) && !has_rows(c)) return kernel.run(c, output, want_lse);
    drop_variant(c, append_variant.name);
    Case laid_out = laid_out_in_cache(c);
    change(laid_out);
    return kernel.run(outside_of_caches(read_from_cache(std::move(laid_out))), output, want_lse);
  };
}

/// The names of a table, or of an index, by the change; within what there is.
void rename(Case& c, Slot slot, const std::function<double(std::int64_t at, double old)>& change) {
  if (!c[slot].present()) return;
  const auto last = static_cast<double>(c.k().shape()[0] - 1);
  c[slot] = mapped(c[slot], [&](std::int64_t at, double old) { return std::clamp(change(at, old), 0.0, last); });
}

/// Adds what the function makes of memory to every row of a sequence.
Spoilt::Fault memory_added(std::function<double(const Case& laid_out, const Case& c)> added) {
  return [added = std::move(added)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if ((!has_pages(c) && !has_rows(c)) || reply.status != CallStatus::ok) return reply;
    const double more = added(laid_out_in_cache(c), c);
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) {
      const std::int64_t row = e / c.v().shape()[3];
      return sequence_at(c, row / queries_of(c) / heads_of(c), row % queries_of(c)) ? old + more : old;
    });
    return reply;
  };
}

/// 1 where it is so.
Spoilt::Fault wrong_where(std::function<bool(const Case&)> is) {
  return memory_added([is = std::move(is)](const Case&, const Case& c) { return is(c) ? 1.0 : 0.0; });
}

/// The first value of the first page, or row, that nothing names; 0 where there is none.
double first_unused(const Case& laid_out, const Case& c) {
  std::set<double> named;
  if (has_rows(c)) {
    for (std::int64_t b = 0; b < batch_of(c); ++b) named.insert(laid_out[Slot::cache_index][b]);
  } else {
    const Slot slot = c[Slot::page_table_v].present() ? Slot::page_table_v : Slot::page_table;
    const std::int64_t columns = c[slot].shape()[1];
    for (std::int64_t b = 0; b < batch_of(c); ++b)
      for (std::int64_t column = 0; column < columns_needed(c, b); ++column)
        named.insert(laid_out[slot][b * columns + column]);
  }
  const Tensor& v = laid_out.v();
  for (std::int64_t page = 0; page < v.shape()[0]; ++page)
    if (!named.contains(static_cast<double>(page))) return v.at(page, 0, 0, 0);
  return 0;
}

/// Does the table name a page twice where somebody reads: of two sequences, or of one?
bool repeats_a_page(const Case& c, bool in_one_sequence) {
  if (!has_pages(c)) return false;
  const std::int64_t columns = c[Slot::page_table].shape()[1];
  std::set<double> of_all;
  bool found = false;
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    std::set<double> own;
    for (std::int64_t column = 0; column < columns_needed(c, b); ++column) {
      const double page = c[Slot::page_table][b * columns + column];
      found = found || (in_one_sequence ? own.contains(page) : of_all.contains(page));
      own.insert(page);
    }
    of_all.insert(own.begin(), own.end());
  }
  return found;
}

std::vector<WrongKernel> of_tables() {
  return {
      {"reads pages in their order", memory_read([](Case& c) {
         rename(c, Slot::page_table, [](std::int64_t at, double) { return static_cast<double>(at); });
       })},
      {"reads every sequence's pages by the first row of the table", memory_read([](Case& c) {
         if (!has_pages(c)) return;
         const Tensor table = c[Slot::page_table];
         rename(c, Slot::page_table, [&](std::int64_t at, double) { return table[at % table.shape()[1]]; });
       })},
      {"reads the second page twice", memory_read([](Case& c) {
         if (!has_pages(c) || c[Slot::page_table].shape()[1] < 3) return;
         const Tensor table = c[Slot::page_table];
         rename(c, Slot::page_table,
                [&](std::int64_t at, double old) { return at % table.shape()[1] == 2 ? table[at - 1] : old; });
       })},
      {"reads values by the table of keys", memory_read([](Case& c) { c[Slot::page_table_v] = Tensor(); })},
      {"keeps the numbers of pages in 16 bits", memory_read([](Case& c) {
         for (const Slot slot : {Slot::page_table, Slot::page_table_v})
           rename(c, slot, [](std::int64_t, double old) {
             return static_cast<double>(static_cast<std::uint64_t>(old) % (std::uint64_t{1} << 16));
           });
       })},
      {"reads a slot behind the length of what is in pages", memory_read([](Case& c) {
         if (!has_pages(c)) return;
         const std::int64_t page = c.k().shape()[2];
         c[Slot::kv_lengths] = mapped(c[Slot::kv_lengths], [&](std::int64_t, double old) {
           return static_cast<std::int64_t>(old) % page == 0 ? old : old + 1;
         });
       })},
      {"loses a page that is not full", memory_read([](Case& c) {
         if (!has_pages(c)) return;
         const std::int64_t page = c.k().shape()[2];
         c[Slot::kv_lengths] = mapped(c[Slot::kv_lengths], [&](std::int64_t b, double old) {
           const auto length = static_cast<std::int64_t>(old);
           const std::int64_t kept = length > page ? length / page * page : length;
           return std::max(static_cast<double>(kept), c[Slot::left_pad].present() ? c[Slot::left_pad][b] : 0.0);
         });
       })},
      {"reads rows of a cache in their order", memory_read([](Case& c) {
         rename(c, Slot::cache_index, [](std::int64_t at, double) { return static_cast<double>(at); });
       })},
  };
}

std::vector<WrongKernel> of_what_is_dead() {
  return {
      {"adds what an unused page holds", memory_added([](const Case& laid_out, const Case& c) {
         return has_pages(c) ? 0.01 * first_unused(laid_out, c) : 0.0;
       })},
      {"adds what an unused row of a cache holds", memory_added([](const Case& laid_out, const Case& c) {
         return has_rows(c) ? 0.01 * first_unused(laid_out, c) : 0.0;
       })},
      {"adds what the table says where nobody reads", memory_added([](const Case& laid_out, const Case& c) {
         if (!has_pages(c)) return 0.0;
         const Tensor& table = laid_out[Slot::page_table];
         const std::int64_t columns = table.shape()[1];
         double sum = 0;
         for (std::int64_t b = 0; b < batch_of(c); ++b)
           for (std::int64_t column = columns_needed(c, b); column < columns; ++column)
             sum += std::fmod(table[b * columns + column], 1024);
         return 0.01 * sum;
       })},
      {"adds how many pages there are", memory_added([](const Case& laid_out, const Case& c) {
         return has_pages(c) ? 0.01 * static_cast<double>(laid_out.k().shape()[0] % 64) : 0.0;
       })},
      {"adds how many columns the table has", memory_added([](const Case& laid_out, const Case& c) {
         return has_pages(c) ? 0.01 * static_cast<double>(laid_out[Slot::page_table].shape()[1]) : 0.0;
       })},
      {"adds the number of its first page", memory_added([](const Case& laid_out, const Case& c) {
         return has_pages(c) ? 0.01 * std::fmod(laid_out[Slot::page_table][0], 64) : 0.0;
       })},
      {"adds the number of its first row of a cache", memory_added([](const Case& laid_out, const Case& c) {
         return has_rows(c) ? 0.01 * laid_out[Slot::cache_index][0] : 0.0;
       })},
      {"writes into its pages",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         if (!has_pages(c)) return kernel.run(c, output, want_lse);
         return Reply{CallStatus::failed, "changed k", {}, {}};
       }},
  };
}

std::vector<WrongKernel> of_shapes() {
  return {
      {"is wrong with pages of an odd size",
       wrong_where([](const Case& c) { return has_pages(c) && page_size_of(c) % 2 == 1; })},
      {"is wrong with pages of an even size",
       wrong_where([](const Case& c) { return has_pages(c) && page_size_of(c) % 2 == 0; })},
      {"is wrong in pages", wrong_where(has_pages)},
      {"is wrong where a length ends with a page", wrong_where([](const Case& c) {
         if (!has_pages(c)) return false;
         for (std::int64_t b = 0; b < batch_of(c); ++b)
           if (const double length = c[Slot::kv_lengths][b];
               length > 0 && static_cast<std::int64_t>(length) % page_size_of(c) == 0)
             return true;
         return false;
       })},
      {"is wrong where two sequences share a page",
       wrong_where([](const Case& c) { return repeats_a_page(c, false); })},
      {"is wrong where a page stands twice in a table",
       wrong_where([](const Case& c) { return repeats_a_page(c, true); })},
      {"is wrong where keys and values have a table each",
       wrong_where([](const Case& c) { return c[Slot::page_table_v].present(); })},
      {"is wrong where pages have strides",
       wrong_where([](const Case& c) { return has_pages(c) && layouts_of(c)[Slot::k] != MemoryLayout::row_major; })},
      {"is wrong in rows of a cache", wrong_where(has_rows)},
      {"is wrong in pages beside a sequence without keys", wrong_where([](const Case& c) {
         return has_pages(c) && std::ranges::any_of(sequences_of(c), [](const Sequence& s) { return s.keys == 0; });
       })},
  };
}

}  // namespace

std::vector<WrongKernel> mistaken_pages() {
  std::vector<WrongKernel> all;
  for (auto&& group : {of_tables(), of_what_is_dead(), of_shapes()}) all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace attest
