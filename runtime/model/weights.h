/* The canonical model: a family makes it from a checkpoint, and a backend uploads it. */
#ifndef DT_WEIGHTS_H
#define DT_WEIGHTS_H

#include "model/source.h"
#include "model/types.h"

#include <stdbool.h>
#include <stddef.h>

/* A view of weights in a source, which is not owned; little endian. `group` rows at a time are taken out of every
 * `stride` of the source's rows (q, k and v interleaved by head; an ordinary matrix has group = stride = rows).
 * `zipped`: the two halves of a group lie row by row in turn, as GGUF has llama's q and k, so that row i of the first
 * half is row 2 i there and of the second 2 i + 1. A vector is rows x 1; `plus` is added to each of its numbers. source
 * == NULL: the model has none of these.
 * `across`: the source has the view's columns as its rows, `across` numbers each, of which the view begins at `offset`.
 * `scales`: the blocks of MXFP4 lie in two sources: there are their scales, a byte each, from scales_offset on, and in
 * `source` the rest, where numbers 2 j and 2 j + 1 of a block have the low and the high half of byte j. */
typedef struct {
  const dt_source *source;
  uint64_t offset; /* bytes before the view's first row */
  dt_dtype dtype;
  int rows, cols;
  int group, stride;
  bool zipped;
  float plus;
  int across; /* 0: the rows are the source's */
  const dt_source *scales;
  uint64_t scales_offset;
} dt_matrix;

/* Copies rows first..first+count-1, one behind the other, dt_row_bytes(dtype, cols) each. Fails as source_read does. */
dt_status dt_read_rows(const dt_matrix *m, int first, int count, void *to, dt_error *err);
/* All numbers of a vector, widened, with `plus`. */
dt_status dt_read_vector(const dt_matrix *m, float *out, dt_error *err);

/* Part `part` of `parts` of a fused matrix whose rows go [head][part][head_dim]. */
dt_matrix dt_part_of_heads(dt_matrix fused, int parts, int part, int head_dim);
/* The same of one whose rows go [part][row]; and any rows of such a one. */
dt_matrix dt_part_of_rows(dt_matrix fused, int parts, int part);
dt_matrix dt_some_rows(dt_matrix fused, int first, int rows);
/* Matrix, or vector, i of those of `rows` rows each that lie one behind the other. */
dt_matrix dt_one_of(dt_matrix all, int i, int rows);
/* Rows of queries or keys that are zipped head by head. */
dt_matrix dt_zipped_heads(dt_matrix zipped, int head_dim);

typedef enum { DT_NORM_LAYER, DT_NORM_RMS } dt_norm_kind;
/* DT_ACT_CLAMPED is gpt-oss's, only with a gate: for gate g and up u, both at most 7 and u at least -7,
 * (u + 1) * g / (1 + exp(-1.702 g)) in the place of act(g) * u. */
typedef enum { DT_ACT_GELU_ERF, DT_ACT_GELU_TANH, DT_ACT_SILU, DT_ACT_CLAMPED } dt_act_kind;

/* One of a layer's experts. E = expert_inter: down(act(gate(n)) * up(n)). */
typedef struct {
  dt_matrix gate, up, down;                /* [E,H] [E,H] [H,E] */
  dt_matrix gate_bias, up_bias, down_bias; /* [E] [E] [H] */
} dt_expert;

#define DT_EXPERTS 512 /* most experts of a layer */

/* A delta layer has the gated delta rule (Yang, Kautz, Hatamizadeh: Gated Delta Networks, 2024) in the place of
 * attention. n is the row after norm1, K = key_heads * key_dim, U = value_heads * value_dim. Of a row:
 *   m = delta_in(n)                                                         [2K + U]
 *   q, k, v = silu(sum over t of conv[.][t] * m of the row taps - 1 - t before)      [K], [K], [U], side by side
 *   g = delta_decay * softplus(delta_a(n) + delta_shift)                    [value_heads]
 *   b = sigmoid(delta_b(n))                                                 [value_heads]
 * Of a value head, with its part of these; several value heads share q and k of a key head (delta_tiled):
 *   q = q / sqrt(|q|^2 + 1e-6) / sqrt(key_dim)
 *   k = k / sqrt(|k|^2 + 1e-6)
 *   S = e^g S                                                               [key_dim, value_dim], zero before the text
 *   u = b (v - S'k)
 *   S = S + k u'
 *   y = S'q
 * Of a row again, where rms normalizes each head's part:
 *   x += o(rms(y) * delta_norm * silu(delta_z(n)))
 * cpu/delta_layer.h has the sums by which it is computed. */
#define DT_DELTA_TAPS 4
#define DT_DELTA_LAG 64 /* levels that a tree may have in a model with delta layers: see cpu/delta_layer.h */

/* One decoder layer. H = hidden, A = heads * head_dim, G = kv_heads * head_dim, I = inter, P = inputs. x is the
 * residual stream. Biases are not shown: each is optional. A norm that a layer lacks leaves its input as it is.
 *
 * Parallel residual, both norms of the layer's input:
 *   x += o(attention(norm1(x))) + mlp(norm2(x))
 * Sequential residual:
 *   x += o_norm(o(attention(norm1(x))))
 *   x += down_norm(mlp(norm2(x)))
 * Then, if the model has inputs (dt_model_desc), and if the layer has a scale:
 *   x += input_norm(input_out(act(input_gate(x)) * inputs))
 *   x *= scale
 *
 * An MLP, and one with a gate:
 *   mlp(n) = down(act(up(n)))
 *   mlp(n) = down(act(gate(n)) * up(n))
 * Experts in the place of an MLP; the `chosen` experts are those of the largest r, ties by lower e, and sums over them
 * go by rising e:
 *   r = router_scale * router(n)
 *   p_e = exp(r_e) / sum over all experts of exp(r)
 *   w_e = p_e                                         or, with chosen_only,
 *   w_e = p_e / sum over the chosen of p
 *   mlp(n) = sum over the chosen of w_e * expert_scale_e * experts_scale * expert_e(n)
 * With router_sigmoid the chosen are those of the largest p + router_correction:
 *   p_e = 1 / (1 + exp(-r_e))
 *   w_e = p_e / (sum over the chosen of p + 1e-20)    with chosen_only
 * Experts in addition to an MLP, also one whose part has a gate of its own:
 *   mlp(n) = mlp_norm(down(..)) + experts_norm(sum over the chosen ..)
 *   mlp(n) = mlp_norm(down(..) * sigmoid(mlp_gate(n))) + experts_norm(sum over the chosen ..)
 * With expert_norm and router_norm the experts read expert_norm(x) and the router router_norm(x), in the place of n.
 *
 * A head's sink is a score that its softmax's sum has beside the scores of the keys, and that gives no value. */
typedef struct {
  dt_matrix norm1, norm1_bias, norm2, norm2_bias; /* [H] */
  dt_matrix o_norm, down_norm;                    /* [H] */
  dt_matrix q, k, v;                              /* [A,H] [G,H] [G,H] */
  dt_matrix q_bias, k_bias, v_bias;               /* [A] [G] [G] */
  /* [head_dim] RMS norms of every head, before it rotates; [A] [G]: of all heads together; both or none */
  dt_matrix q_norm, k_norm;
  dt_matrix o, o_bias;                         /* [H,A] [H] */
  dt_matrix up, up_bias, gate, gate_bias;      /* [I,H] [I] */
  dt_matrix down, down_bias;                   /* [H,I] [H] */
  dt_matrix input_gate, input_out, input_norm; /* [P,H] [H,P] [H], P = shape.inputs */
  dt_matrix scale;                             /* [1] */
  dt_matrix sinks;                             /* [heads] */
  dt_matrix router, router_bias;               /* [experts,H] [experts]; a layer with experts has an MLP or none */
  dt_matrix router_correction, expert_scale;   /* [experts] */
  dt_matrix mlp_norm, experts_norm, expert_norm, router_norm; /* [H] */
  dt_matrix mlp_gate;                                         /* [1,H] */
  dt_matrix q_gate; /* [A,H] the attention output is multiplied by sigmoid(q_gate(n)) */
  /* Of a delta layer, which has o [H,U] and no q, k and v. */
  dt_matrix delta_in, delta_z, delta_a, delta_b;              /* [2K+U,H] [U,H] [value_heads,H] [value_heads,H] */
  dt_matrix delta_conv, delta_decay, delta_shift, delta_norm; /* [2K+U,4] [value_heads] [value_heads] [value_dim] */
  int window; /* its rows see this many tokens, their own the last; 0: all */
  bool still; /* its heads do not rotate */
  bool delta;
  int kv_heads, head_dim, inter; /* at most the shape's; 0: as many as these */
  dt_expert *expert;             /* [experts]; NULL: it has none */
  /* Counted from 1, an earlier layer whose keys and values its heads read: it has no k and v; 0: its own. Not 0 in a
   * reader (dt_head_kind): they are those of the target's last layer that has its own and that has, or has not, a
   * window as this one. */
  int keys_of;
} dt_layer;

enum { DT_LAYER_MATRICES = offsetof(dt_layer, window) / sizeof(dt_matrix) }; /* it begins with these */

/* A model's numbers, held by value wherever they are needed. */
typedef struct {
  int vocab, hidden, layers, heads, kv_heads, head_dim, inter, context;
  int window;      /* its layers see this many tokens, and context is cut to it; 0: they see all positions */
  int rotary_dims; /* the first rotary_dims of a head rotate, as split halves; even */
  int local_dims;  /* the same of layers with a window, where the model has local_freq; 0: as many */
  int inputs;      /* numbers of a token that each layer reads behind its blocks; 0: none */
  float norm_eps;
  dt_norm_kind norm;
  dt_act_kind act;
  bool parallel_residual;
  bool gated;                        /* the MLP has a gate */
  bool wide_norms;                   /* q_norm and k_norm are of all heads together */
  bool normed_values;                /* each head's values are RMS normalized, without weights */
  int experts, chosen, expert_inter; /* of a layer with experts; those that a row takes; their width. 0: none */
  bool chosen_only, router_sigmoid;  /* see dt_layer */
  int delta_key_heads, delta_value_heads, delta_key_dim, delta_value_dim; /* of delta layers; 0: it has none */
  bool delta_log;                                                         /* delta_decay holds ln(-decay) */
  bool delta_tiled; /* value head h has key head h % key_heads; else h / (value_heads / key_heads) */
  /* Factors, each 0 where a model has none. */
  float embed_scale, residual_scale, logit_scale; /* of embeddings, of what layers add to the stream, of logits */
  float attention_scale;                          /* of scores; 0: head_dim^-0.5 */
  float turn_scale;                               /* of the cosines and sines of inv_freq */
  float score_cap, logit_cap;                     /* a score, a logit x becomes cap * tanh(x / cap) */
  float router_scale, experts_scale;              /* see dt_layer */
} dt_shape;

/* The shape with this layer's numbers in the place of those that the layer has of its own. */
dt_shape dt_shape_of(const dt_shape *s, const dt_layer *l);

/* With inputs, each of L layers reads P numbers of a token whose scaled embedding is e, as in Gemma 3n and 4:
 *   inputs = (inputs_norm(H^-0.5 inputs_proj(e)) + P^0.5 inputs_embed[token]) * 2^-0.5      of each layer's part */
typedef struct {
  dt_shape shape;
  const float *inv_freq;   /* [rotary_dims / 2] the angle of pair j at position p is (double)p * inv_freq[j] */
  const float *local_freq; /* [local_dims / 2] the same for layers with a window; NULL: they turn as the others */
  dt_matrix embed;         /* [vocab,H] */
  dt_matrix inputs_embed, inputs_proj, inputs_norm; /* [vocab,L P] [L P,H] [P] */
  dt_matrix final_norm, final_norm_bias;
  dt_matrix unembed;  /* [vocab,H] no bias */
  const int32_t *ids; /* [n_ids] those whose rows of unembed are wanted, rising; NULL: all. Such a model only drafts */
  const int32_t *id_rows; /* [n_ids] which rows these are; NULL: those of the same number */
  int n_ids;
  const dt_layer *layer; /* [layers] */
  /* The files, for ranks (ranks.h) that share the model: each has a part of it. NULL: it is whole here. */
  const char *path;
} dt_model_desc;

/* A draft head reads a token and the feature of the row before it. After a row of the text the feature is the target's:
 * `taps` of its streams side by side, T numbers each. After a row of a tree it is the head's own for that row, H
 * numbers: x after the layer, unless said otherwise. e is the token's embedding, f the feature; [a, b]: side by side.
 *
 * EAGLE: T = H; its row at position p predicts the token at p + 2.
 *   x = fc([e, f]) + bias
 *   x = layer(x)
 *   logits = unembed(x)
 * MTP is an EAGLE head with norms, whose layer is a whole one of the target's kind. Files of Qwen3.5 and GLM-4.5 have
 * one, which transformers leaves out; vLLM's qwen3_5_mtp.py and SGLang's glm4_moe_nextn.py compute it so. It may have
 * an embedding and an output of its own.
 *   x = fc([token_norm(e), feature_norm(f)])
 *   x = final_norm(layer(x))                          the feature is this
 *   logits = unembed(x)
 * EAGLE-3: its row at position p predicts the token at p + 2.
 *   x = fc(f)                                         f of the target; of the head's own: x = f
 *   x = layer(x)                                      q, k and v [.., 2H] read [token_norm(e), feature_norm(x)]
 *   logits = unembed(final_norm(x))
 * MEDUSA has no layer and reads no token. For distance d, from 0, its row at p predicts the token at p + 2 + d.
 *   x = f                                             the target's
 *   x += act(W x + b)                                 for each block of d
 *   logits = d's output matrix(x)
 * CROSS_ATTENTION: some layers, which have no keys and read the target's. All rows of a tree are at the root's position
 * p and see the target's rows 0 to p - 1, never each other; the row of a node of depth d predicts the token at p + 1 +
 * d. It is Gemma 4's assistant, which Gemma4AssistantForCausalLM and SinglePositionMultiTokenCandidateGenerator of
 * transformers 5 compute so.
 *   x = fc([e, f])                                    e and f of T numbers each
 *   x = final_norm(layers(x))
 *   logits = unembed(x)
 *   feature = post(x) */
typedef enum { DT_HEAD_EAGLE, DT_HEAD_EAGLE3, DT_HEAD_MEDUSA, DT_HEAD_CROSS_ATTENTION } dt_head_kind;

#define DT_TAPS 8       /* most streams that make a feature */
#define DT_DISTANCES 16 /* most distances, */
#define DT_BLOCKS 4     /* and blocks of each */

typedef struct {
  /* One layer, whose norm1 none has; MEDUSA: none; CROSS_ATTENTION: some. No embed, no unembed: the target's. */
  dt_model_desc model;
  dt_head_kind kind;
  int taps;
  int tap[DT_TAPS];      /* streams as they enter these layers; behind the last one; one more: behind the final norm */
  dt_matrix fc, fc_bias; /* EAGLE-3: [H, taps T]; EAGLE: [H, 2H]; CROSS_ATTENTION: [H, 2T]; the bias may be absent */
  dt_matrix post;        /* CROSS_ATTENTION only: [T, H] */
  /* EAGLE-3 only. Norms before fc, of all numbers or of each stream's, may be absent. */
  dt_matrix all_norm, stream_norm[DT_TAPS];
  dt_matrix token_norm, feature_norm; /* [H] of e, of x; in an EAGLE head of e, of f, and both or none */
  bool norm_residual;                 /* x goes on as its norm has left it */
  bool norm_output;                   /* its output is x after the final norm */
  /* MEDUSA only. */
  int distances, blocks;
  dt_matrix block[DT_DISTANCES][DT_BLOCKS], block_bias[DT_DISTANCES][DT_BLOCKS]; /* [H,H] [H] */
  dt_matrix output[DT_DISTANCES];                                                /* [vocab,H] */
} dt_head_desc;

#endif
