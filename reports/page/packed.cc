#include "reports/page/packed.h"

#include <zlib.h>

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <new>

namespace attest {
namespace {

/// In gzip's format, as Vega's script is (CMakeLists.txt); empty where there was no memory for it.
std::string gzip_of(std::string_view text) {
  z_stream stream{};
  constexpr int gzip = 16, window = 15, memory = 9;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, window + gzip, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string bytes(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  const int end = deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return end == Z_STREAM_END ? bytes : std::string();
}

}  // namespace

std::string base64_of(std::string_view bytes) {
  using namespace boost::archive::iterators;
  using Digits = base64_from_binary<transform_width<const char*, 6, 8>>;
  std::string text(Digits(bytes.data()), Digits(bytes.data() + bytes.size()));
  return text.append((3 - bytes.size() % 3) % 3, '=');
}

std::string packed(std::string html) {
  constexpr std::size_t most = 1U << 30U;
  if (html.size() > most) return html;
  const std::string bytes = gzip_of(html);
  if (bytes.empty() || bytes.size() > html.size() / 2) return html;
  return "<noscript><p class=\"warning\">This part of the page is packed: it is shown where scripts may run.</p>"
         "</noscript><script type=\"text/plain\" class=\"packed\">" +
         base64_of(bytes) + "</script>";
}

}  // namespace attest
