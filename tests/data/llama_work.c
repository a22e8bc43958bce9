// What llama_bench.c times, over llama.cpp's own libraries. The first call opens the model and tells the logits behind a prompt.
#include <stdio.h>

#include "llama.h"

enum { KNOWN = 12, MOST = 512 };
static struct llama_context* context;

static int take(llama_token* tokens, int count) { return llama_decode(context, llama_batch_get_one(tokens, count)); }

int work(const char* path, int prompt, int generated, int threads) {
  static llama_token tokens[MOST];
  if (!context) {
    ggml_backend_load_all();
    struct llama_model* model = llama_model_load_from_file(path, llama_model_default_params());
    struct llama_context_params params = llama_context_default_params();
    params.n_threads = params.n_threads_batch = threads;
    if (!model || !(context = llama_init_from_model(model, params))) return 1;
    const int words = llama_vocab_n_tokens(llama_model_get_vocab(model));
    for (int i = 0; i < MOST; ++i) tokens[i] = (7 * i + 3) % words;
    if (take(tokens, KNOWN)) return 1;
    fprintf(stderr, "logits:");
    for (int i = 0; i < words; ++i) fprintf(stderr, " %.9g", llama_get_logits_ith(context, -1)[i]);
    fprintf(stderr, "\n");
  }
  if (prompt > MOST || generated > MOST) return 1;
  llama_memory_clear(llama_get_memory(context), true);
  int failed = prompt ? take(tokens, prompt) : 0;
  for (int i = 0; i < generated; ++i) failed |= take(tokens + i, 1);
  return failed;
}
