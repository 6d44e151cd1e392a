#include "headrace/train/nets.h"

namespace headrace {

Sequential& Sequential::then(std::function<Node(Graph&, Node)> layers) {
  steps_.push_back(std::move(layers));
  return *this;
}

Sequential& Sequential::dense(int units, DenseLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.dense(x, units, options); });
}
Sequential& Sequential::conv(int filters, ConvLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.conv(x, filters, options); });
}
Sequential& Sequential::conv_transpose(int filters, ConvTransposeLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.conv_transpose(x, filters, options); });
}
Sequential& Sequential::depthwise_conv(DepthwiseConvLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.depthwise_conv(x, options); });
}
Sequential& Sequential::batch_norm(BatchNormLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.batch_norm(x, options); });
}
Sequential& Sequential::relu() {
  return then([](Graph& g, Node x) { return g.relu(x); });
}
Sequential& Sequential::gelu() {
  return then([](Graph& g, Node x) { return g.gelu(x); });
}
Sequential& Sequential::silu() {
  return then([](Graph& g, Node x) { return g.silu(x); });
}
Sequential& Sequential::sigmoid() {
  return then([](Graph& g, Node x) { return g.sigmoid(x); });
}
Sequential& Sequential::tanh() {
  return then([](Graph& g, Node x) { return g.tanh(x); });
}
Sequential& Sequential::leaky_relu() {
  return then([](Graph& g, Node x) { return g.leaky_relu(x); });
}
Sequential& Sequential::elu() {
  return then([](Graph& g, Node x) { return g.elu(x); });
}
Sequential& Sequential::softplus() {
  return then([](Graph& g, Node x) { return g.softplus(x); });
}
Sequential& Sequential::softmax() {
  return then([](Graph& g, Node x) { return g.softmax(x); });
}
Sequential& Sequential::layer_norm(LayerNormLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.layer_norm(x, options); });
}
Sequential& Sequential::embedding(int entries, int width, EmbeddingLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.embedding(x, entries, width, options); });
}
Sequential& Sequential::position_embedding() {
  return then([](Graph& g, Node x) { return g.position_embedding(x); });
}
Sequential& Sequential::multi_head_attention(int heads, int key_dim, MultiHeadAttentionLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.multi_head_attention(x, heads, key_dim, options); });
}
Sequential& Sequential::max_pool(int window, MaxPoolLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.max_pool(x, window, options); });
}
Sequential& Sequential::average_pool(int window, AveragePoolLayerOptions options) {
  return then([=](Graph& g, Node x) { return g.average_pool(x, window, options); });
}
Sequential& Sequential::global_average_pool() {
  return then([](Graph& g, Node x) { return g.global_average_pool(x); });
}
Sequential& Sequential::flatten() {
  return then([](Graph& g, Node x) { return g.flatten(x); });
}
Sequential& Sequential::dropout(float rate) {
  return then([=](Graph& g, Node x) { return g.dropout(x, rate); });
}

Net Sequential::net(const std::string& input, std::optional<Shape> shape) const {
  return [steps = steps_, input, shape](Graph& graph) {
    Node x = shape ? graph.input(input, *shape) : graph.input(input);
    for (const auto& layers : steps) x = layers(graph, x);
    return x;
  };
}

}  // namespace headrace
