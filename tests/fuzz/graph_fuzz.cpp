// The JSON of a net.
#include <stdexcept>

#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/fuzz/json_mutation.h"
#include "headrace/train/graph.h"
#include "headrace/train/nets.h"

namespace headrace::fuzz {

namespace {

test::Bytes written_net(const Net& net) {
  Graph graph;
  graph.finish(net(graph));
  return test::to_bytes(to_json(graph));
}

}  // namespace

std::vector<test::Bytes> seeds() {
  return {written_net([](Graph& g) {
            const Node x = g.dense(g.flatten(g.input("image", {4, 4, 1})), 6, {.activation = Activation::kGelu});
            return g.dense(g.dropout(x, 0.2F), 3, {.bias = false});
          }),
          written_net([](Graph& g) {
            Node x = g.conv(g.input("image", {6, 6, 2}), 4,
                            {.kernel = {2, 3}, .padding = ConvPadding::kValid, .groups = 2});
            x = g.max_pool(g.relu(g.batch_norm(x, {.momentum = 0.7F})), 2, {.stride = 1});
            return g.dense(g.flatten(x), 4);
          }),
          written_net(net_named("resnet18"))};
}

void run(std::span<const std::byte> input) {
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  const std::string json = to_json(*graph_from_json(text));
  if (to_json(*graph_from_json(json)) != json)
    throw std::logic_error("a net that was read is another one when it is written and read again");
}

void repair(test::Bytes& input) {
  static const std::vector<test::Bytes> sound = seeds();
  make_json(input, sound);
}

}  // namespace headrace::fuzz
