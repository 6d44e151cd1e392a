// Owners of what Arrow's C interfaces hand over.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/pipeline/arrow_structs.h"

namespace headrace {

// A struct of the C interfaces, released once. Its content is zero until it is filled in.
template <typename Struct>
class ArrowOwned {
 public:
  ArrowOwned() = default;
  // Takes over what `*from` holds and marks it as released.
  static ArrowOwned moved(Struct* from) noexcept {
    ArrowOwned owned;
    owned.content_ = std::exchange(*from, {});
    return owned;
  }
  ArrowOwned(ArrowOwned&& other) noexcept : content_(std::exchange(other.content_, {})) {}
  ArrowOwned& operator=(ArrowOwned&& other) noexcept {
    std::swap(content_, other.content_);
    return *this;
  }
  ~ArrowOwned() {
    if (content_.release != nullptr) content_.release(&content_);
  }

  Struct* get() noexcept { return &content_; }
  const Struct* operator->() const noexcept { return &content_; }
  const Struct& operator*() const noexcept { return content_; }
  bool is_filled() const noexcept { return content_.release != nullptr; }

 private:
  Struct content_{};
};

using ArrowBatch = ArrowOwned<ArrowArray>;

// Reads a stream. One thread at a time.
class ArrowReader {
 public:
  // Throws ConfigError naming `source` if the stream has been released or read already.
  ArrowReader(std::string source, ArrowOwned<ArrowArrayStream> stream);

  // Both throw DataError with the stream's own message.
  ArrowOwned<ArrowSchema> schema();
  std::optional<ArrowBatch> next();  // std::nullopt at the end

 private:
  [[noreturn]] void fail(int code, const char* doing);

  std::string source_;
  ArrowOwned<ArrowArrayStream> stream_;
};

}  // namespace headrace
