#include "headrace/tests/support/arrow_builder.h"

namespace headrace::test {
namespace {

// What a struct points to.
struct MadeSchema {
  ArrowNode node;
  std::vector<ArrowSchema> children = {}, dictionary = {};
  std::vector<ArrowSchema*> places = {};
};
struct MadeArray {
  ArrowNode node;
  std::shared_ptr<int> live;
  std::vector<const void*> buffers = {};
  std::vector<ArrowArray> children = {}, dictionary = {};
  std::vector<ArrowArray*> places = {};
};

template <typename Made, typename Struct>
void release_made(Struct* released) {
  auto* made = static_cast<Made*>(released->private_data);
  for (auto* list : {&made->children, &made->dictionary}) {
    for (Struct& child : *list) {
      if (child.release != nullptr) child.release(&child);
    }
  }
  if constexpr (requires { made->live; }) --*made->live;
  delete made;
  released->release = nullptr;
}

ArrowSchema schema_of(const ArrowNode& node) {
  auto* made = new MadeSchema{.node = node};
  for (const ArrowNode& child : node.children) made->children.push_back(schema_of(child));
  for (const ArrowNode& values : node.dictionary) made->dictionary.push_back(schema_of(values));
  for (ArrowSchema& child : made->children) made->places.push_back(&child);
  return {.format = made->node.format.c_str(),
          .name = made->node.name.c_str(),
          .metadata = node.metadata.empty() ? nullptr : made->node.metadata.data(),
          .flags = ARROW_FLAG_NULLABLE,
          .n_children = std::ssize(made->places),
          .children = made->places.data(),
          .dictionary = made->dictionary.empty() ? nullptr : made->dictionary.data(),
          .release = release_made<MadeSchema, ArrowSchema>,
          .private_data = made};
}

ArrowArray array_of(const ArrowNode& node, const std::shared_ptr<int>& live) {
  auto* made = new MadeArray{.node = node, .live = live};
  ++*live;
  for (const ArrowNode& child : node.children) made->children.push_back(array_of(child, live));
  for (const ArrowNode& values : node.dictionary) made->dictionary.push_back(array_of(values, live));
  for (ArrowArray& child : made->children) made->places.push_back(&child);
  made->buffers.push_back(made->node.valid ? made->node.valid->data() : nullptr);
  for (const Bytes& buffer : made->node.buffers) made->buffers.push_back(buffer.data());
  return {.length = node.length,
          .null_count = node.valid ? -1 : 0,
          .offset = node.offset,
          .n_buffers = std::ssize(made->buffers),
          .n_children = std::ssize(made->places),
          .buffers = made->buffers.data(),
          .children = made->places.data(),
          .dictionary = made->dictionary.empty() ? nullptr : made->dictionary.data(),
          .release = release_made<MadeArray, ArrowArray>,
          .private_data = made};
}

struct MadeStream {
  std::vector<ArrowNode> batches;
  std::shared_ptr<int> live;
  std::string error;
  std::size_t next = 0;
};

int give_schema(ArrowArrayStream* stream, ArrowSchema* schema) {
  *schema = schema_of(static_cast<MadeStream*>(stream->private_data)->batches.front());
  return 0;
}

int give_batch(ArrowArrayStream* stream, ArrowArray* array) {
  auto* made = static_cast<MadeStream*>(stream->private_data);
  const bool is_end = made->next == made->batches.size();
  if (is_end && !made->error.empty()) return EIO;
  *array = is_end ? ArrowArray{} : array_of(made->batches[made->next++], made->live);
  return 0;
}

const char* give_error(ArrowArrayStream* stream) {
  return static_cast<MadeStream*>(stream->private_data)->error.c_str();
}

void release_stream(ArrowArrayStream* stream) {
  auto* made = static_cast<MadeStream*>(stream->private_data);
  --*made->live;
  delete made;
  stream->release = nullptr;
}

}  // namespace

ArrowArrayStream stream_of(std::vector<ArrowNode> batches, std::shared_ptr<int> live, std::string error) {
  ++*live;
  return {.get_schema = give_schema,
          .get_next = give_batch,
          .get_last_error = give_error,
          .release = release_stream,
          .private_data = new MadeStream{std::move(batches), std::move(live), std::move(error)}};
}

}  // namespace headrace::test
