#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/hash.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace::tensor_header {
namespace {

constexpr std::array<std::pair<DType, const char*>, 6> kDTypeNames{{{DType::kU8, "U8"},
                                                                    {DType::kI32, "I32"},
                                                                    {DType::kI64, "I64"},
                                                                    {DType::kF16, "F16"},
                                                                    {DType::kBF16, "BF16"},
                                                                    {DType::kF32, "F32"}}};

}  // namespace

const char* name_of(DType dtype) noexcept {
  for (const auto& [each, name] : kDTypeNames) {
    if (each == dtype) return name;
  }
  return "";
}

std::optional<DType> dtype_named(std::string_view name) noexcept {
  for (const auto& [each, its_name] : kDTypeNames) {
    if (name == its_name) return each;
  }
  return std::nullopt;
}

std::string checksum_of(std::string header) {
  header.replace(kStart.size(), kDigits, kDigits, '0');
  return xxh3_128_hex(std::as_bytes(std::span(header)));
}

}  // namespace headrace::tensor_header

namespace headrace {
namespace {

using HeaderJson = nlohmann::ordered_json;

constexpr std::byte kZeros[kTensorAlignment]{};

std::size_t padding_after(std::size_t bytes) {
  return (kTensorAlignment - bytes % kTensorAlignment) % kTensorAlignment;
}

// First places tensors that need no padding, then the others with padding between them.
void order_and_pad(std::vector<TensorToWrite>& tensors) {
  std::ranges::stable_partition(tensors,
                                [](const TensorToWrite& each) { return padding_after(each.bytes.size()) == 0; });
  std::vector<TensorToWrite> padded;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t room = padding_after(tensors[i].bytes.size());
    padded.push_back(std::move(tensors[i]));
    if (room == 0 || i + 1 == tensors.size()) continue;
    padded.push_back({.name = std::string(tensor_header::kPadding) + std::to_string(i),
                      .dtype = DType::kU8,
                      .shape = {static_cast<std::int64_t>(room)},
                      .bytes = std::span(kZeros).first(room)});
  }
  tensors = std::move(padded);
}

HeaderJson checksums_of(const std::vector<TensorToWrite>& tensors) {
  HeaderJson checksums = HeaderJson::object();
  for (const TensorToWrite& tensor : tensors) {
    HeaderJson& blocks = checksums[tensor.name] = HeaderJson::array();
    for (std::size_t at = 0; at < tensor.bytes.size(); at += kTensorBlock) {
      blocks.push_back(xxh3_128_hex(tensor.bytes.subspan(at, std::min(kTensorBlock, tensor.bytes.size() - at))));
    }
  }
  return checksums;
}

std::string header_of(const RecordTexts& texts, const std::vector<TensorToWrite>& tensors) {
  using namespace tensor_header;
  HeaderJson metadata{{kChecksum, std::string(kDigits, '0')}};
  for (const auto& [name, text] : texts) metadata[name] = text;
  metadata[std::string(kChecksums)] = checksums_of(tensors).dump();
  HeaderJson header{{kMetadata, metadata}};
  std::uint64_t at = 0;
  for (const TensorToWrite& tensor : tensors) {
    const auto extents = tensor.shape.extents();
    header[tensor.name] = {{"dtype", name_of(tensor.dtype)},
                           {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                           {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = header.dump();
  const std::size_t beyond = (kLengthBytes + text.size()) % kPayloadAlignment;
  text.append((kPayloadAlignment - beyond) % kPayloadAlignment, ' ');
  HEADRACE_CHECK(text.starts_with(kStart), "a tensor file's header begins with its checksum");
  return text.replace(kStart.size(), kDigits, checksum_of(text));
}

}  // namespace

void write_tensor_file(const std::filesystem::path& path, const RecordTexts& texts,
                       std::vector<TensorToWrite> tensors, Links links) {
  std::erase_if(tensors, [](const TensorToWrite& each) { return each.bytes.empty(); });
  order_and_pad(tensors);
  const std::string header = header_of(texts, tensors);
  std::byte length[tensor_header::kLengthBytes];
  for (std::size_t i = 0; i < sizeof(length); ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));
  FileWriter writer(path, Appears::kWhole, links);
  writer.append(length);
  writer.append(std::as_bytes(std::span(header)));
  for (const TensorToWrite& tensor : tensors) writer.append(tensor.bytes);
  writer.commit();
}

}  // namespace headrace
