/* The configuration of a model, as its checkpoint states it. The keys are those of config.json or of a GGUF file; a
 * family reads them with the functions below, which take each key's name in either. */
#ifndef DT_CONFIG_H
#define DT_CONFIG_H

#include "model/rotation.h"
#include "model/weights.h"

#include <cjson/cJSON.h>

#define CONFIG_MAX_EOS 8
#define CONFIG_MAX_SIZE (1 << 24) /* vocabulary, widths, context: products of two fit 64 bits */
#define CONFIG_MAX_LAYERS (1 << 12)

/* The configuration that a family reads. */
typedef struct {
  dt_shape shape;
  rotation rotation;
  rotation local_rotation; /* of layers with a window, where two_rotations */
  bool two_rotations;
  bool attention_bias; /* o has a bias (GPT-NeoX: q, k and v too) */
  bool qkv_bias, mlp_bias;
  bool normed_heads;   /* queries and keys have norms, */
  bool perhaps_normed; /* those of a GGUF file in layers that have the tensors */
  bool zipped_heads;   /* rows of q and k lie as llama.cpp's converter has put them: see dt_matrix */
  bool gated_heads;    /* q has rows of queries and of gates, head by head in turn */
  bool fused;          /* q, k and v are one matrix, gate and up another */
  bool norms_behind;   /* blocks end in a norm .. */
  bool norms_before;   /* .. and begin with one; without norms_behind they always do */
  float norm_plus;     /* added to the weights of all norms */
  int window;          /* of local layers; 0: they see all */
  bool local[CONFIG_MAX_LAYERS], still[CONFIG_MAX_LAYERS]; /* layers with the window, without rotation */
  bool delta[CONFIG_MAX_LAYERS];                           /* delta layers */
  bool dense[CONFIG_MAX_LAYERS];                           /* layers without experts, where shape has some */
  const char *router_name, *experts_name; /* of tensors in Hugging Face's files, where they are not the usual ones */
  bool beside_experts;     /* layers with experts have their MLP too, and norms around both, as Gemma 4 */
  const char *shared_name; /* of the expert that all rows share, in folders; NULL: layers with experts have none */
  bool gated_shared;       /* it has a gate, see mlp_gate of dt_layer */
  bool biased_experts;     /* experts and their router have biases; in folders as gpt-oss has them */
  bool sinks;              /* heads have sinks */
  bool post_named;         /* GGUF files call the norm before the second block post_attention_norm */
  /* Of each layer, as in dt_layer. */
  int kv_heads[CONFIG_MAX_LAYERS], head_dim[CONFIG_MAX_LAYERS], inter[CONFIG_MAX_LAYERS], keys_of[CONFIG_MAX_LAYERS];
  bool values_are_keys; /* in layers without a window: the projections of keys, before their norm, are the values */
  bool scaled_layers;   /* the stream has a factor behind each layer */
  bool cross_attention; /* no layer has keys: all read another model's */
  bool tied;            /* the embedding may serve as unembedding */
  int32_t eos[CONFIG_MAX_EOS];
  int n_eos;
  int further; /* layers that draft (MTP), behind the others */
} config;

typedef struct {
  const char *path; /* of the file that they are in, for messages */
  const cJSON *json;
  const cJSON *generation; /* of generation_config.json, which comes first; NULL: none */
  bool gguf;               /* their names are GGUF's, without the architecture before them */
  dt_error *err;
} keys;

/* In all of these `hf` may list several spellings, with a bar between; of those that are there the values must agree. A
 * dot leads into an object: "rotary_emb_base|rope_theta|rope_parameters.rope_theta". NULL: a file of that kind has no
 * such key. A key that is absent or null is what `absent` says. DT_EINPUT names the file, the key, what was found and
 * what is supported. */
dt_status config_int(const keys *k, const char *hf, const char *gguf, int max, int *out); /* 1..max; must be there */
dt_status config_int_or(const keys *k, const char *hf, const char *gguf, int absent, int max, int *out);
dt_status config_count(const keys *k, const char *hf, const char *gguf, int absent, int max, int *out); /* 0..max */
/* As config_int_or, of each of `layers`: a number for all or, in a GGUF file, a list. absent = 0: it must be there. */
dt_status config_each(const keys *k, const char *hf, const char *gguf, int absent, int max, int layers, int *out);
/* Fails unless a layer can have such heads: key heads divide heads, a head is even, and all heads together have at most
 * CONFIG_MAX_SIZE numbers, so that products of theirs fit an int. */
dt_status config_check_heads(const keys *k, int heads, int kv_heads, int head_dim);
/* A text; "" if it is absent. */
const char *config_text(const keys *k, const char *hf, const char *gguf);
dt_status config_bool(const keys *k, const char *hf, const char *gguf, bool absent, bool *out);
dt_status config_number(const keys *k, const char *hf, const char *gguf, double absent, double min, double max,
                        double *out);
dt_status config_act(const keys *k, const char *hf, const char *gguf, const char *absent, dt_act_kind *out);

/* How heads rotate; `base` are Hugging Face's spellings of the base, which is `usual` where it is absent. */
dt_status config_rotation(const keys *k, const char *base, double usual, rotation *out);
/* The same of layers with a window, where they have a rotation of their own. */
dt_status config_local_rotation(const keys *k, const char *base, double usual, rotation *out);

/* Which layers have a window, and its width. Unless the keys list them: of `each` layers all but the last; each = 0:
 * all. */
dt_status config_local(const keys *k, int usual_window, int each, config *c);
/* Which layers do not rotate. Unless the keys list them: of `each` layers the last. */
dt_status config_still(const keys *k, int each, config *c);

/* A cap: a number above 0, or null for none, which is 0. */
dt_status config_cap(const keys *k, const char *name, double absent, float *out);

/* A window of positions, which c's shape then keeps to: all results are the same up to there. `windowed`: the family
 * has one; `use`: if this key says so (NULL: always). layer_types, where they are there, say it instead. */
dt_status config_window(const keys *k, const char *use, bool windowed, config *c);

/* Layers without experts: all but each n-th of decoder_sparse_step = n, and those that mlp_only_layers lists. */
dt_status config_dense(const keys *k, config *c);

/* Refuses keys that the family does not compute: weights of other tools, experts, caps, scales. `takes`: those that it
 * does, with a space between. */
dt_status config_refuse_others(const keys *k, const char *takes);

/* The keys of the part of a model that reads text, where others read pictures and sound and are left out. takes: as
 * below. */
dt_status config_text_part(const keys *k, const char *takes, keys *text);

/* Counts the layers that draft (MTP): c->further. A GGUF file has them among shape.layers, from which they are
 * taken. */
dt_status config_leave_further(const keys *k, config *c);

/* Layer i without its tensors and experts. */
dt_layer config_layer(const config *c, int i);

/* eos_token_id: a token id, a list of them, or null. GGUF files say more of it: see the tokenizer. */
dt_status config_eos(const keys *k, config *c);

#endif
