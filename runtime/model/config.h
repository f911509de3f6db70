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
  rotation local_rotation; /* the rotation of layers with a window, if two_rotations */
  bool two_rotations;
  bool attention_bias; /* o has a bias (GPT-NeoX: q, k and v too) */
  bool qkv_bias, mlp_bias;
  bool normed_heads;   /* queries and keys have norms */
  bool perhaps_normed; /* in a GGUF file, only layers with the tensors have these norms */
  bool zipped_heads;   /* the rows of q and k are in the order of llama.cpp's converter: see dt_matrix */
  bool gated_heads;    /* q contains the rows of queries and gates, alternating by head */
  bool fused;          /* q, k and v are one matrix, gate and up another */
  bool norms_behind;   /* blocks end with a norm */
  bool norms_before;   /* blocks begin with a norm; always true without norms_behind */
  float norm_plus;     /* added to the weights of all norms */
  int window;          /* of local layers; 0: they see all positions */
  bool local[CONFIG_MAX_LAYERS], still[CONFIG_MAX_LAYERS]; /* layers with the window; layers without rotation */
  bool delta[CONFIG_MAX_LAYERS];                           /* delta layers */
  bool dense[CONFIG_MAX_LAYERS];                           /* layers without experts, in a model that has experts */
  const char *router_name, *experts_name; /* names of tensors in Hugging Face's files; NULL: the usual ones */
  bool beside_experts;     /* layers with experts also have an MLP, and norms around both, as in Gemma 4 */
  const char *shared_name; /* name of the expert that all rows share, in folders; NULL: there is none */
  bool gated_shared;       /* the shared expert has a gate: see mlp_gate of dt_layer */
  bool biased_experts;     /* experts and their router have biases; in folders, with the names of gpt-oss */
  bool sinks;              /* heads have sinks */
  bool post_named;         /* GGUF files call the norm before the second block post_attention_norm */
  /* For each layer, as in dt_layer. */
  int kv_heads[CONFIG_MAX_LAYERS], head_dim[CONFIG_MAX_LAYERS], inter[CONFIG_MAX_LAYERS], keys_of[CONFIG_MAX_LAYERS];
  bool values_are_keys; /* in layers without a window, the projected keys (before their norm) are also the values */
  bool scaled_layers;   /* the stream is multiplied by a factor after each layer */
  bool cross_attention; /* no layer has keys: all read those of another model */
  bool tied;            /* the embedding may serve as unembedding */
  int32_t eos[CONFIG_MAX_EOS];
  int n_eos;
  int further; /* number of layers for multi-token prediction (MTP), after the others */
} config;

typedef struct {
  const char *path; /* of the file with the keys, for messages */
  const cJSON *json;
  const cJSON *generation; /* those of generation_config.json, which take precedence; NULL: none */
  bool gguf;               /* the keys have GGUF's names, without the prefix of the architecture */
  dt_error *err;
  bool factors; /* a GGUF file with tensors of LongRoPE's numbers, whose keys may not name that type */
  dt_rope rope; /* what the files do not decide */
} keys;

/* The following functions read a key that is called `hf` in config.json and `gguf` in a GGUF file; NULL: files of that
 * kind do not have the key. `hf` may list several spellings, separated by bars; if several are present, their values
 * must agree. A dot leads into an object: "rotary_emb_base|rope_theta|rope_parameters.rope_theta". A key that is absent
 * or null gets the value `absent`. DT_EINPUT names the file, the key, what was found and what is supported. */
dt_status config_int(const keys *k, const char *hf, const char *gguf, int max,
                     int *out); /* 1..max; the key is required */
dt_status config_int_or(const keys *k, const char *hf, const char *gguf, int absent, int max, int *out);
dt_status config_count(const keys *k, const char *hf, const char *gguf, int absent, int max, int *out); /* 0..max */
/* Reads a number for each of `layers` layers, as config_int_or does: one number for all or, in a GGUF file, a list.
 * absent = 0: the key is required. */
dt_status config_each(const keys *k, const char *hf, const char *gguf, int absent, int max, int layers, int *out);
/* Fails unless a layer can have such heads: `kv_heads` divides `heads`, head_dim is even, and all heads together have
 * at most CONFIG_MAX_SIZE numbers, so that products of these sizes fit an int. */
dt_status config_check_heads(const keys *k, int heads, int kv_heads, int head_dim);
/* Returns a string; "" if the key is absent. */
const char *config_text(const keys *k, const char *hf, const char *gguf);
dt_status config_bool(const keys *k, const char *hf, const char *gguf, bool absent, bool *out);
dt_status config_number(const keys *k, const char *hf, const char *gguf, double absent, double min, double max,
                        double *out);
dt_status config_act(const keys *k, const char *hf, const char *gguf, const char *absent, dt_act_kind *out);

/* A key as a file has it: the item of its first spelling that is present, and that spelling. */
enum { CONFIG_SPELLING = 96 };
typedef struct {
  const cJSON *item;          /* NULL: the key is absent */
  char name[CONFIG_SPELLING]; /* if it is absent, the first of all spellings */
} config_key;
config_key config_find(const keys *k, const char *hf, const char *gguf);

/* Reads how heads rotate (config_rotation.c). base: Hugging Face's spellings of the key for the base, whose default is
 * `usual`. shape.context is already read: it grows if the scaling allows more positions, and is limited to k->rope's if
 * the rotation depends on their number. */
dt_status config_rotation(const keys *k, const char *base, double usual, config *c);
/* Reads the numbers that pairs have of their own, as soon as shape.rotary_dims is known. */
dt_status config_pairs(const keys *k, config *c);
/* The same as config_rotation for layers with a window, if these have a rotation of their own. */
dt_status config_local_rotation(const keys *k, const char *base, double usual, config *c);

/* Reads which layers have a window, and its width. If the keys do not list the layers, all have it except every
 * `each`-th; each = 0: all have it. */
dt_status config_local(const keys *k, int usual_window, int each, config *c);
/* Reads which layers do not rotate. If the keys do not list them, these are every `each`-th. */
dt_status config_still(const keys *k, int each, config *c);

/* Reads a cap: a number above 0, or null for no cap, which gives 0. */
dt_status config_cap(const keys *k, const char *name, double absent, float *out);

/* Reads a sliding window and limits the context of c->shape to it; within it, all results are the same as with the
 * window. windowed: models of the family have a window, if the key `use` says so (NULL: always). If there is a key
 * layer_types, it decides instead. */
dt_status config_window(const keys *k, const char *use, bool windowed, config *c);

/* Reads which layers have no experts: all except every n-th, if decoder_sparse_step is n, and those that
 * mlp_only_layers lists. */
dt_status config_dense(const keys *k, config *c);

/* Refuses keys for features that the family does not compute: weights of other tools, experts, caps, scales. takes: the
 * keys of this kind that the family supports, separated by spaces. */
dt_status config_refuse_others(const keys *k, const char *takes);

/* Finds the keys of the part of a model that reads text; the parts for pictures and sound are ignored. takes: as for
 * config_refuse_others. */
dt_status config_text_part(const keys *k, const char *takes, keys *text);

/* Counts the layers for multi-token prediction (MTP) in c->further. A GGUF file counts them among its layers, so they
 * are subtracted from shape.layers. */
dt_status config_leave_further(const keys *k, config *c);

/* Returns layer i without its tensors and experts. */
dt_layer config_layer(const config *c, int i);

/* Reads eos_token_id: a token id, a list of them, or null. GGUF files have this in the keys of the tokenizer. */
dt_status config_eos(const keys *k, config *c);

#endif
