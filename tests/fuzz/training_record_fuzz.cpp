// Training records and checkpoints: their tensors and the JSON in their header.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/hash.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/fuzz/json_mutation.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/train/optimizer_of_everything.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/records/record.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace::fuzz {

using namespace test;

namespace {

Training& training() {
  static Training made("cpu", 1);
  return made;
}

Node record_net(Graph& g) { return g.dense(g.dropout(g.dense(g.input("image", {8}), 6), 0.2F), 4); }

// A checkpoint in the middle of an epoch, and a finished record.
std::vector<Bytes> record_files() {
  std::vector<Bytes> files;
  for (const Optimizer& optimizer : {adam(), sgd(0.1F, {.momentum = 0.9F})}) {
    const TempFolder folder;
    Model model = compiled(training().strategy, record_net, optimizer);
    model.fit(blobs(20).batch({.global_batch = 8}),
              {.epochs = 2,
               .verbose = 0,
               .checkpoints = CheckpointOptions{.folder = folder.path(),
                                                .record = folder / "record",
                                                .name = "at-{step}",
                                                .every_steps = files.empty() ? 2U : 0U}});
    files.push_back(read_whole_file(files.empty() ? folder / "at-2.safetensors" : folder / "record"));
  }
  return files;
}

const std::vector<Bytes>& sound_files() {
  static const std::vector<Bytes> files = record_files();
  return files;
}

// One of the files, with a text of its header changed and written anew.
Bytes with_changed_text(std::uint64_t number) {
  static const TempFolder folder;
  Philox random({.seed = 5, .record = number});
  const TensorFile file(folder.write("sound", sound_files()[random.below(2)]));
  RecordTexts texts;
  for (const char* name : {"format", "graph", "compiled", "input", "training", "history", "callbacks"}) {
    if (file.has_text(name)) texts[name] = file.text(name);
  }
  auto changed = std::next(texts.begin(), random.below(static_cast<std::uint32_t>(texts.size())));
  if (!AnyJson::parse(changed->second).empty()) changed->second = mutated_json(changed->second, random);
  std::vector<Bytes> bytes;
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    bytes.emplace_back(size_of(tensor.dtype) * static_cast<std::size_t>(tensor.shape.elements()));
    file.read(tensor, bytes.back());
    tensors.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .bytes = bytes.back()});
  }
  write_tensor_file(folder / "changed", texts, std::move(tensors));
  return read_whole_file(folder / "changed");
}

}  // namespace

std::vector<Bytes> seeds() { return sound_files(); }

void run(std::span<const std::byte> input) {
  static const TempFolder folder;
  const Record record(folder.write("input.safetensors", input));
  record.verify();
  for (const Record::Use use : {Record::Use::kResults, Record::Use::kAll}) {
    try {
      record.build(training().strategy, {}, use);
    } catch (const Error&) {
    }
  }
  record.input();
}

// Every other one with another text, the others with the header's checksum made right.
void repair(Bytes& input) {
  const std::uint64_t number = xxh3(input);
  if (number % 2 == 0) {
    input = with_changed_text(number);
    return;
  }
  namespace header = tensor_header;
  std::uint64_t length = 0;
  if (input.size() < header::kLengthBytes) return;
  std::memcpy(&length, input.data(), sizeof length);
  const std::size_t digits = header::kLengthBytes + header::kStart.size();
  if (length > input.size() - header::kLengthBytes || digits + header::kDigits > header::kLengthBytes + length)
    return;
  const std::string text(reinterpret_cast<const char*>(input.data()) + header::kLengthBytes, length);
  const std::string checksum = header::checksum_of(text);
  std::memcpy(input.data() + digits, checksum.data(), header::kDigits);
}

}  // namespace headrace::fuzz
