#include "headrace/pipeline/sources/zstd_input.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// A zstd block of 4 bytes unpacks to at most 128 KiB.
constexpr std::uint64_t kMostZstdGain = (std::uint64_t{128} << 10) / 4;

}  // namespace

void ZstdInput::Free::operator()(archive* reader) const noexcept { archive_read_free(reader); }

ZstdInput::ZstdInput(const std::filesystem::path& path)
    : ByteInput(path.string()), file_(path), reader_(archive_read_new()) {
  if (reader_ == nullptr) throw std::bad_alloc();
  if (archive_read_support_filter_zstd(reader_.get()) != ARCHIVE_OK) {
    throw DataError(ErrorCode::kUnsupported, "libarchive was built without zstd", {.source = name()},
                    "unpack it first: zstd -d " + path.filename().string());
  }
  archive_read_support_format_raw(reader_.get());
  archive_entry* entry = nullptr;
  if (archive_read_open(reader_.get(), this, nullptr, &ZstdInput::feed, nullptr) != ARCHIVE_OK ||
      archive_read_next_header(reader_.get(), &entry) != ARCHIVE_OK) {
    fail();
  }
}

ZstdInput::~ZstdInput() = default;

std::uint64_t ZstdInput::most_left() const noexcept {
  // libarchive reads ahead a piece of the file and one unpacked block.
  const std::uint64_t packed = file_.most_left() + (std::uint64_t{256} << 10);
  return block_.size() + packed * kMostZstdGain;
}

void ZstdInput::fail() const {
  if (read_error_) std::rethrow_exception(read_error_);
  const char* words = archive_error_string(reader_.get());
  const la_int64_t taken = archive_filter_bytes(reader_.get(), -1);  // negative once libarchive has given up
  throw DataError(ErrorCode::kDataCorrupt,
                  std::string("damaged zstd data: ") + (words != nullptr ? words : "no frame found"),
                  {.source = name(), .offset = taken >= 0 ? static_cast<std::uint64_t>(taken) : file_.position()},
                  "download or copy the file anew");
}

std::ptrdiff_t ZstdInput::feed(archive* reader, void* self, const void** piece) {
  auto* input = static_cast<ZstdInput*>(self);
  try {
    const std::span<const std::byte> bytes = input->file_.next_piece();
    *piece = bytes.data();
    return static_cast<std::ptrdiff_t>(bytes.size());
  } catch (...) {  // nothing may be thrown through C
    input->read_error_ = std::current_exception();
    archive_set_error(reader, EIO, "cannot read");
    return ARCHIVE_FATAL;
  }
}

std::size_t ZstdInput::read_some(std::span<std::byte> into) {
  while (block_.empty() && !ended_) {
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int status = archive_read_data_block(reader_.get(), &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) {
      ended_ = true;
    } else if (status != ARCHIVE_OK) {
      fail();
    } else {
      block_ = {static_cast<const std::byte*>(bytes), size};
    }
  }
  const std::size_t count = std::min(into.size(), block_.size());
  if (count > 0) std::memcpy(into.data(), block_.data(), count);
  block_ = block_.subspan(count);
  return count;
}

}  // namespace headrace
