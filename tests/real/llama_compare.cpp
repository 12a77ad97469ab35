// One model of llama.cpp on its CPU backend and on the GPU: prompt processing in one batch, then token generation one
// by one.
//   llama_compare MODEL.gguf [plain|flash] [prompt=N] [tokens=N] [error=X] [gpu-only]
// Prints the normalised mean squared error of the logits of both phases, and fails beyond the tolerance that ggml's own
// test-backend-ops has for one matrix product, the operation that makes most of the error. Types whose activations the
// two backends round differently (k-quants: blocks of 256 on the CPU, of 32 on the GPU) need more, because errors of a
// dozen products in a row add up; the same number on GPUs with and without matrix instructions shows that it is not the
// GPU's. `gpu-only` computes no reference: it is for captures.
#include <ggml-backend.h>
#include <llama.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Options {
  std::string model;
  bool flash = false, gpu_only = false;
  int prompt = 48, tokens = 8;
  double most_error = 5e-4;  // test-backend-ops: max_nmse_err of test_mul_mat
};

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "llama_compare: %s\n", what);
  std::exit(3);
}

using Logits = std::vector<float>;

// The logits of the prompt's every position, then those of every generated token. Tokens are fixed and not sampled, so
// that one difference does not lead to another text.
struct Run {
  Logits prompt, generation;
};

Run run(const Options& options, std::vector<ggml_backend_dev_t> devices) {
  devices.push_back(nullptr);
  llama_model_params model_params = llama_model_default_params();
  model_params.devices = devices.data();
  model_params.n_gpu_layers = devices.size() > 1 ? 99 : 0;
  llama_model* model = llama_model_load_from_file(options.model.c_str(), model_params);
  if (model == nullptr) stop("the model cannot be loaded");

  llama_context_params context_params = llama_context_default_params();
  context_params.n_ctx = 256;
  context_params.n_batch = context_params.n_ubatch = 256;
  context_params.n_threads = context_params.n_threads_batch = 2;
  context_params.flash_attn_type = options.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context* context = llama_init_from_model(model, context_params);
  if (context == nullptr) stop("no context");

  const int words = llama_vocab_n_tokens(llama_model_get_vocab(model));
  unsigned state = 12345;
  const auto next_token = [&] {
    return static_cast<llama_token>(3 + (state = state * 1103515245u + 12345u) / 65536 % (words - 3));
  };

  Run result;
  const auto keep = [&](Logits& to, int index) {
    const float* logits = llama_get_logits_ith(context, index);
    if (logits == nullptr) stop("no logits");
    to.insert(to.end(), logits, logits + words);
  };
  llama_batch batch = llama_batch_init(options.prompt, 0, 1);
  const auto add = [&](llama_token token, int position) {
    const int at = batch.n_tokens++;
    batch.token[at] = token;
    batch.pos[at] = position;
    batch.n_seq_id[at] = 1;
    batch.seq_id[at][0] = 0;
    batch.logits[at] = 1;
  };
  for (int position = 0; position < options.prompt; ++position) add(next_token(), position);
  if (llama_decode(context, batch) != 0) stop("the prompt cannot be processed");
  for (int position = 0; position < options.prompt; ++position) keep(result.prompt, position);
  for (int step = 0; step < options.tokens; ++step) {
    batch.n_tokens = 0;
    add(next_token(), options.prompt + step);
    if (llama_decode(context, batch) != 0) stop("a token cannot be generated");
    keep(result.generation, 0);
  }
  llama_batch_free(batch);
  llama_free(context);
  llama_model_free(model);
  return result;
}

double error_of(const Logits& expected, const Logits& got) {
  double difference = 0, size = 0;
  for (std::size_t at = 0; at < expected.size(); ++at) {
    if (!std::isfinite(got[at])) return INFINITY;
    difference += std::pow(double{got[at]} - expected[at], 2);
    size += std::pow(double{expected[at]}, 2);
  }
  return difference / size;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  for (int at = 1; at < count; ++at) {
    const std::string argument = arguments[at];
    if (argument == "flash") {
      options.flash = true;
    } else if (argument == "gpu-only") {
      options.gpu_only = true;
    } else if (argument.rfind("prompt=", 0) == 0) {
      options.prompt = std::atoi(argument.c_str() + 7);
    } else if (argument.rfind("tokens=", 0) == 0) {
      options.tokens = std::atoi(argument.c_str() + 7);
    } else if (argument.rfind("error=", 0) == 0) {
      options.most_error = std::atof(argument.c_str() + 6);
    } else if (argument != "plain") {
      options.model = argument;
    }
  }
  if (options.model.empty())
    stop("usage: llama_compare MODEL.gguf [plain|flash] [prompt=N] [tokens=N] [error=X] [gpu-only]");
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level >= GGML_LOG_LEVEL_WARN && level != GGML_LOG_LEVEL_CONT) std::fputs(text, stderr);
      },
      nullptr);
  ggml_backend_load_all();
  llama_backend_init();
  std::vector<ggml_backend_dev_t> gpus;
  for (std::size_t index = 0; index < ggml_backend_dev_count(); ++index) {
    ggml_backend_dev_t device = ggml_backend_dev_get(index);
    if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_GPU) continue;
    std::printf("device: %s, %s\n", ggml_backend_dev_name(device), ggml_backend_dev_description(device));
    gpus.push_back(device);
  }
  if (gpus.empty()) stop("llama.cpp sees no GPU");
  const Run gpu = run(options, gpus);
  if (options.gpu_only) return 0;
  const Run cpu = run(options, {});
  const double prompt = error_of(cpu.prompt, gpu.prompt), generation = error_of(cpu.generation, gpu.generation);
  const bool good = prompt <= options.most_error && generation <= options.most_error;
  std::printf("prompt of %d tokens: error %.2e; generation of %d tokens: error %.2e; at most %.0e: %s\n",
              options.prompt, prompt, options.tokens, generation, options.most_error, good ? "agrees" : "DIFFERS");
  return good ? 0 : 1;
}
