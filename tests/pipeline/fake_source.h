// Sources that misbehave on request.
#pragma once

#include "headrace/pipeline/source.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// Record r is one i64 of value r, or bytes given beforehand; not in memory as far as the engine is told.
class FakeSource final : public Source {
 public:
  explicit FakeSource(std::uint64_t records, std::function<void(std::uint64_t)> on_read = {})
      : on_read_(std::move(on_read)) {
    info_ = {.name = "fake",
             .records = records,
             .fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}},
             .classes = {},
             .fingerprint = 4711};
  }
  // Encoded images.
  explicit FakeSource(std::vector<std::vector<std::byte>> images, bool checked = false)
      : images_(std::move(images)) {
    info_ = {.name = "fake images",
             .records = images_.size(),
             .fields = {{.name = "image", .dtype = DType::kU8, .shape = {}, .encoding = Encoding::kImage}},
             .classes = {},
             .fingerprint = 4712,
             .images_checked = checked};
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    ++reads_;
    if (on_read_) on_read_(index);
    if (images_.empty()) {
      scratch.resize(sizeof index);
      std::memcpy(scratch.data(), &index, sizeof index);
    } else {
      scratch = images_[index];
    }
    RecordView view;
    view.fields[0] = scratch;
    return view;
  }

  std::string describe(std::uint64_t index) const override { return "item/" + std::to_string(index); }

  std::uint64_t reads() const noexcept { return reads_.load(); }

 private:
  SourceInfo info_;
  std::function<void(std::uint64_t)> on_read_;
  std::vector<std::vector<std::byte>> images_;
  mutable std::atomic<std::uint64_t> reads_{0};
};

// JPEGs of pictures, a little different in size.
inline std::shared_ptr<FakeSource> fake_jpegs(int count) {
  std::vector<std::vector<std::byte>> images;
  for (int i = 0; i < count; ++i) {
    images.push_back(encode_jpeg(make_picture(24 + i % 5, 30 - i % 3, 3, static_cast<std::uint64_t>(i))));
  }
  return std::make_shared<FakeSource>(std::move(images));
}

}  // namespace headrace::test
