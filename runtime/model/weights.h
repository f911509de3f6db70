/* The canonical description of a model. A family (family.h) makes it from a checkpoint, and a backend uploads it. */
#ifndef DT_WEIGHTS_H
#define DT_WEIGHTS_H

#include "model/rope.h"
#include "model/source.h"
#include "model/types.h"

#include <stdbool.h>
#include <stddef.h>

/* A view of a matrix of weights (little endian) in a source, which the view does not own. source == NULL: the model
 * does not have this matrix. A vector is a matrix of rows x 1.
 *
 * - group, stride: from every `stride` rows of the source, the view takes the first `group`. They select one of q, k
 *   and v in a matrix where these are interleaved by head; an ordinary matrix has group = stride = rows.
 * - zipped: the rows of the two halves of a group alternate in the source, as in llama's q and k in GGUF files: row i
 *   of the first half is row 2 i there, and row i of the second half is row 2 i + 1.
 * - plus: is added to each number of a vector.
 * - across: the source stores the transposed matrix. Each row of the source has `across` numbers and contains a column
 *   of the view; the view's first number is at `offset`.
 * - scales: the blocks of an MXFP4 matrix are in two sources. `scales` has their scales, one byte each, from
 *   scales_offset on. `source` has the codes: byte j of a block has number 2 j in its low half and number 2 j + 1 in
 *   its high half. */
typedef struct {
  const dt_source *source;
  uint64_t offset; /* bytes before the view's first number */
  dt_dtype dtype;
  int rows, cols;
  int group, stride;
  bool zipped;
  float plus;
  int across; /* 0: the matrix is not transposed */
  const dt_source *scales;
  uint64_t scales_offset;
} dt_matrix;

/* Copies rows first..first+count-1 to `to`, without gaps, in dt_row_bytes(dtype, cols) bytes each. Fails as source_read
 * does. */
dt_status dt_read_rows(const dt_matrix *m, int first, int count, void *to, dt_error *err);
/* Reads all numbers of a vector as f32, with `plus` added. */
dt_status dt_read_vector(const dt_matrix *m, float *out, dt_error *err);

/* The view of part `part` of `parts` of a fused matrix whose rows are ordered [head][part][head_dim]. */
dt_matrix dt_part_of_heads(dt_matrix fused, int parts, int part, int head_dim);
/* The same for a matrix whose rows are ordered [part][row]; and the view of rows first..first+rows-1 of such a
 * matrix. */
dt_matrix dt_part_of_rows(dt_matrix fused, int parts, int part);
dt_matrix dt_some_rows(dt_matrix fused, int first, int rows);
/* The view of matrix (or vector) i among matrices of `rows` rows each that are stored one after another. */
dt_matrix dt_one_of(dt_matrix all, int i, int rows);
/* The view of a matrix of queries or keys whose heads are zipped (see dt_matrix). */
dt_matrix dt_zipped_heads(dt_matrix zipped, int head_dim);

typedef enum { DT_NORM_LAYER, DT_NORM_RMS } dt_norm_kind;
/* DT_ACT_CLAMPED is the activation of gpt-oss and needs a gate. With the gate's output g and the up projection u, where
 * g = min(g, 7) and u is clamped to -7..7, it computes (u + 1) * g / (1 + exp(-1.702 g)) instead of act(g) * u. */
typedef enum { DT_ACT_GELU_ERF, DT_ACT_GELU_TANH, DT_ACT_SILU, DT_ACT_CLAMPED } dt_act_kind;

/* An expert of a layer, with E = expert_inter: it computes down(act(gate(n)) * up(n)). */
typedef struct {
  dt_matrix gate, up, down;                /* [E,H] [E,H] [H,E] */
  dt_matrix gate_bias, up_bias, down_bias; /* [E] [E] [H] */
} dt_expert;

#define DT_EXPERTS 512 /* maximum number of experts in a layer */

/* A delta layer uses the gated delta rule (Yang, Kautz, Hatamizadeh: Gated Delta Networks, 2024) instead of attention.
 * n is the row after norm1, K = key_heads * key_dim, U = value_heads * value_dim. For each row:
 *   m = delta_in(n)                                                         [2K + U]
 *   q, k, v = silu(sum over t of conv[.][t] * m of the row DT_DELTA_TAPS - 1 - t before)   [K], [K], [U], in this order
 *   g = delta_decay * softplus(delta_a(n) + delta_shift)                    [value_heads]
 *   b = sigmoid(delta_b(n))                                                 [value_heads]
 * For each value head, with its part of these (several value heads share q and k of a key head: see delta_tiled), where
 * ' transposes:
 *   q = q / sqrt(|q|^2 + 1e-6) / sqrt(key_dim)
 *   k = k / sqrt(|k|^2 + 1e-6)
 *   S = exp(g) S                                                            [key_dim, value_dim], zero before the text
 *   u = b (v - S'k)
 *   S = S + k u'
 *   y = S'q
 * For the whole row again, where rms normalizes each head's part:
 *   x += o(rms(y) * delta_norm * silu(delta_z(n)))
 * backend/delta_rows.h gives the order of the sums. */
#define DT_DELTA_TAPS 4
#define DT_DELTA_LAG 64 /* maximum depth of a tree in a model with delta layers: see backend/delta_rows.h */

/* One decoder layer. H = hidden, A = heads * head_dim, G = kv_heads * head_dim, I = inter, P = inputs. x is the
 * residual stream. Biases are not shown; each is optional. Where a layer has no such norm, the input is used unchanged.
 *
 * With a parallel residual, both norms are applied to the layer's input:
 *   x += o(attention(norm1(x))) + mlp(norm2(x))
 * With a sequential residual:
 *   x += o_norm(o(attention(norm1(x))))
 *   x += down_norm(mlp(norm2(x)))
 * The first of these lines follows if the model has inputs (dt_model_desc), the second if the layer has a scale:
 *   x += input_norm(input_out(act(input_gate(x)) * inputs))
 *   x *= scale
 *
 * An MLP without and with a gate:
 *   mlp(n) = down(act(up(n)))
 *   mlp(n) = down(act(gate(n)) * up(n))
 * Experts instead of an MLP: the `chosen` experts are those with the largest r (ties by lower number i). Sums over them
 * are in the order of rising i:
 *   r = router_scale * router(n)
 *   p_i = exp(r_i) / sum over all experts of exp(r)
 *   w_i = p_i                                         or, with chosen_only,
 *   w_i = p_i / sum over the chosen of p
 *   mlp(n) = sum over the chosen of w_i * expert_scale_i * experts_scale * expert_i(n)
 * With router_sigmoid, the chosen experts are those with the largest p + router_correction:
 *   p_i = 1 / (1 + exp(-r_i))
 *   w_i = p_i                                         or, with chosen_only,
 *   w_i = p_i / (sum over the chosen of p + 1e-20)
 * Experts in addition to an MLP; in the second line, the MLP's part has its own gate:
 *   mlp(n) = mlp_norm(down(..)) + experts_norm(sum over the chosen ..)
 *   mlp(n) = mlp_norm(down(..) * sigmoid(mlp_gate(n))) + experts_norm(sum over the chosen ..)
 * With expert_norm and router_norm, the experts read expert_norm(x) and the router reads router_norm(x), instead of n.
 *
 * A head's sink takes part in its softmax like the score of one more key, which has no value. */
typedef struct {
  dt_matrix norm1, norm1_bias, norm2, norm2_bias; /* [H] */
  dt_matrix o_norm, down_norm;                    /* [H] */
  dt_matrix q, k, v;                              /* [A,H] [G,H] [G,H] */
  dt_matrix q_bias, k_bias, v_bias;               /* [A] [G] [G] */
  /* RMS norms of queries and keys before they rotate: [head_dim] for every head, or [A] [G] for all heads together
   * (wide_norms). Both or none. */
  dt_matrix q_norm, k_norm;
  dt_matrix o, o_bias;                         /* [H,A] [H] */
  dt_matrix up, up_bias, gate, gate_bias;      /* [I,H] [I] */
  dt_matrix down, down_bias;                   /* [H,I] [H] */
  dt_matrix input_gate, input_out, input_norm; /* [P,H] [H,P] [H], P = shape.inputs */
  dt_matrix scale;                             /* [1] */
  dt_matrix sinks;                             /* [heads] */
  dt_matrix router, router_bias;               /* [experts,H] [experts]; a layer with experts may also have an MLP */
  dt_matrix router_correction, expert_scale;   /* [experts] */
  dt_matrix mlp_norm, experts_norm, expert_norm, router_norm; /* [H] */
  dt_matrix mlp_gate;                                         /* [1,H] */
  dt_matrix q_gate; /* [A,H] the attention output is multiplied by sigmoid(q_gate(n)) */
  /* Only in a delta layer, which has o [H,U] but no q, k and v. */
  dt_matrix delta_in, delta_z, delta_a, delta_b;              /* [2K+U,H] [U,H] [value_heads,H] [value_heads,H] */
  dt_matrix delta_conv, delta_decay, delta_shift, delta_norm; /* [2K+U,4] [value_heads] [value_heads] [value_dim] */
  /* Only in a block head, all four or none: see mix in dt_head_kind. [2 taps groups,H] [2 taps H] */
  dt_matrix attention_mix, attention_mix_base, mlp_mix, mlp_mix_base;
  int window; /* its rows see this many tokens, up to and including their own; 0: all */
  bool still; /* its queries and keys are not rotated */
  bool delta;
  int kv_heads, head_dim, inter; /* at most the shape's; 0: the shape's */
  dt_expert *expert;             /* [experts]; NULL: no experts */
  /* The earlier layer, counted from 1, whose keys and values this layer reads instead of having k and v; 0: its own. In
   * a cross-attention head (dt_head_kind) it is not 0, and the layer reads the target: the last of its layers that has
   * keys and agrees with this one in having a window or not. */
  int keys_of;
  bool backward; /* in a block head: rows do not see later rows of their block */
  /* Another part of the model computes the second half of this layer: all that follows `x += o_norm(o(..))`. Not with
   * a parallel residual. */
  bool apart;
} dt_layer;

/* A dt_layer begins with this many matrices. */
enum { DT_LAYER_MATRICES = offsetof(dt_layer, window) / sizeof(dt_matrix) };

/* The dimensions and constants of a model, copied by value wherever they are needed. */
typedef struct {
  int vocab, hidden, layers, heads, kv_heads, head_dim, inter, context;
  int window;      /* its layers see this many tokens, and context is limited to it; 0: they see all positions */
  int rotary_dims; /* the first rotary_dims of a head rotate, as split halves; even */
  int local_dims;  /* the same for layers with a window, if the model has local_freq; 0: rotary_dims */
  int inputs;      /* how many numbers of a token each layer reads after its blocks (see dt_model_desc); 0: none */
  float norm_eps;
  dt_norm_kind norm;
  dt_act_kind act;
  bool parallel_residual;
  bool gated;                        /* the MLP has a gate */
  bool wide_norms;                   /* q_norm and k_norm normalize all heads together */
  bool normed_values;                /* each head's values are RMS normalized, without weights */
  int experts, chosen, expert_inter; /* experts in a layer; how many a row chooses; their width. 0: none */
  bool chosen_only, router_sigmoid;  /* see dt_layer */
  int delta_key_heads, delta_value_heads, delta_key_dim, delta_value_dim; /* of delta layers; 0: the model has none */
  bool delta_log;                                                         /* delta_decay holds ln(-decay) */
  bool delta_tiled;         /* value head h uses key head h % key_heads; otherwise h / (value_heads / key_heads) */
  int mix_taps, mix_groups; /* see mix in dt_head_kind; 0: none */
  /* Factors; 0: the model does not use the factor. */
  float embed_scale, residual_scale, logit_scale; /* for embeddings, for what layers add to the stream, for logits */
  float attention_scale;                          /* for attention scores; 0: head_dim^-0.5 */
  float turn_scale;                               /* for the cosines and sines of the angles from inv_freq */
  float score_cap, logit_cap;                     /* a score or logit x becomes cap * tanh(x / cap) */
  float router_scale, experts_scale;              /* see dt_layer */
} dt_shape;

/* Returns the model's shape with the sizes that this layer has of its own. */
dt_shape dt_shape_of(const dt_shape *s, const dt_layer *l);

/* Return the layer without the matrices of its other half: see dt_layer.apart. */
dt_layer dt_first_half(const dt_layer *l);
dt_layer dt_second_half(const dt_layer *l);

/* The part of a model that a backend loads and computes, if several backends share the model (split.h). All false: the
 * whole model. */
typedef struct {
  bool enters; /* its first layer reads the stream that an earlier part left, not the embeddings */
  bool leaves; /* the stream leaves after its last layer: it has no final norm and no output */
  /* It has the second halves of the layers that are `apart` and nothing else. A pass computes one of them
   * (dt_rows.layer); the stream enters and leaves. */
  bool halves;
} dt_part;

/* A model. If it has inputs (Gemma 3n and 4), each of its L layers reads P numbers of the token, whose scaled embedding
 * is e. The formula is applied to each layer's part separately:
 *   inputs = (inputs_norm(H^-0.5 inputs_proj(e)) + P^0.5 inputs_embed[token]) * 2^-0.5 */
typedef struct {
  dt_shape shape;
  const float *inv_freq;   /* [rotary_dims / 2] the angle of pair j at position p is (double)p * inv_freq[j] */
  const float *local_freq; /* [local_dims / 2] the same for layers with a window; NULL: they rotate as the others */
  dt_matrix embed;         /* [vocab,H] */
  dt_matrix inputs_embed, inputs_proj, inputs_norm; /* [vocab,L P] [L P,H] [P] */
  dt_matrix final_norm, final_norm_bias;
  dt_matrix unembed; /* [vocab,H] no bias */
  /* [n_ids] The ids whose logits are wanted, rising; NULL: all. A model with `ids` can only draft. */
  const int32_t *ids;
  const int32_t *id_rows; /* [n_ids] the rows of unembed for these ids; NULL: row i for id i */
  int n_ids;
  const dt_layer *layer; /* [layers] */
  dt_part part;          /* only its layers are in `layer`; the rest of the description is that of the whole model */
  /* The model's files, if ranks (ranks.h) or two devices (split.h) may share the model, so that each has a part. NULL:
   * it is whole here. */
  const char *path;
  dt_rope rope; /* with which the files were opened, if `path` is set */
} dt_model_desc;

/* A draft head reads a token and the feature of the row before it. If that row belongs to the text, the feature is the
 * target's: `taps` of its streams (dt_head_desc.tap) side by side, T numbers each, T being the target's hidden size. If
 * it belongs to a tree, the feature is the head's own for that row: for EAGLE and EAGLE-3, x after the layer (with
 * norm_output after final_norm), H numbers; for CROSS_ATTENTION, post(x), T numbers. MEDUSA has no feature of its own.
 * Below, e is the token's embedding, f is the feature, and [a, b] means a and b side by side.
 *
 * EAGLE: T = H; its row at position p reads the feature of p and the token at p + 1, and predicts the token at p + 2.
 *   x = fc([e, f]) + bias
 *   x = layer(x)
 *   logits = unembed(x)
 * MTP is an EAGLE head (DT_HEAD_EAGLE) with norms, whose layer is a complete layer of the target's kind. It may have
 * its own embedding and output. The files of Qwen3.5 and GLM-4.5 contain one, which transformers ignores; the formula
 * is that of qwen3_5_mtp.py in vLLM and glm4_moe_nextn.py in SGLang.
 *   x = fc([token_norm(e), feature_norm(f)])
 *   x = final_norm(layer(x))                          this is the feature (norm_output)
 *   logits = unembed(x)
 * EAGLE-3: its row at position p reads and predicts as that of EAGLE.
 *   x = fc(f)                                         if f is the target's; if it is the head's own, x = f
 *   x = layer(x)                                      q, k and v [.., 2H] read [token_norm(e), feature_norm(x)]
 *   logits = unembed(final_norm(x))
 * MEDUSA has no layer and reads no token. For each distance d, from 0 on, its row at p predicts the token at p + 2 + d.
 *   x = f                                             the target's
 *   x += act(W x + b)                                 for each block of d
 *   logits = d's output matrix(x)
 * CROSS_ATTENTION has one or more layers without keys of their own: they read the target's. All rows of a tree have the
 * root's position p and see the target's rows 0 to p - 1, never each other; the row of a node of depth d predicts the
 * token at p + 1 + d. This is Gemma 4's assistant, as computed by Gemma4AssistantForCausalLM and
 * SinglePositionMultiTokenCandidateGenerator of transformers 5.
 *   x = fc([e, f])                                    e and f of T numbers each
 *   x = final_norm(layers(x))
 *   logits = unembed(x)
 *   feature = post(x)
 * BLOCK has layers with keys of their own and guesses several tokens in one pass. Committed tokens have rows of keys
 * and values only; the row at position p reads the feature f of p and no token. In each layer, q, k and v are the
 * layer's, and k is normalized and rotated as usual:
 *   g = feature_norm(fc(f)),  keys = k(g),  values = v(g)
 * The rows of a block read tokens and no features. The first has the last committed token and its position n; the
 * others, at n + 1 to n + block_rows - 1, have the token `mask`. They see the keys before n and those of the whole
 * block or, in layers that look backward, those of rows up to their own. The row at n + i predicts the token at n + i,
 * and the first predicts nothing; with from_anchor, the row at n + i predicts the token at n + i + 1. This is DFlash
 * (github.com/z-lab/dflash) and, if all layers look backward, JetSpec (arXiv 2606.18394).
 *   x = layers(e)
 *   logits = unembed(final_norm(x))
 * DSpark (arXiv 2607.05147) adds to the logit of token b what depends on the token a before it:
 *   logits[b] += before[a] . after[b]
 * DFlash2 (as computed by llama.cpp's src/models/dflash.cpp) considers only the `listed` largest logits of a row. Its
 * sum has a factor for each of the R numbers, post(final_norm(x)), and its layers mix each row with those before it in
 * the block. For row i, channel c of group g, and s = 0 or 1:
 *   logits[b] += (before[a] * post(final_norm(x))) . after[b]
 *   w = attention_mix(norm1(x)); around the MLP, mlp_mix(norm2(x))           [2, taps, groups]
 *   mix(s, y)[i] = sum over t < taps, t <= i: (mix_base[s][t][c] + w[i][s][t][g]) * y[i - t][c]
 *   x += mix(1, o(attention(mix(0, norm1(x)))))
 *   x += mix(1, mlp(mix(0, norm2(x)))) */
typedef enum { DT_HEAD_EAGLE, DT_HEAD_EAGLE3, DT_HEAD_MEDUSA, DT_HEAD_CROSS_ATTENTION, DT_HEAD_BLOCK } dt_head_kind;

#define DT_TAPS 8       /* maximum number of streams in a feature */
#define DT_LISTED 128   /* maximum number of candidates of a row, for heads whose guesses depend on the token before */
#define DT_DISTANCES 16 /* maximum number of distances, and of rows of a block */
#define DT_BLOCKS 4     /* maximum number of blocks for each distance */

typedef struct {
  /* The head's layers: EAGLE and EAGLE-3 have one, MEDUSA none, CROSS_ATTENTION and BLOCK one or more. In EAGLE-3 the
   * layer has no norm1. Without embed or unembed, the head uses the target's. */
  dt_model_desc model;
  dt_head_kind kind;
  int taps;         /* number of streams in `tap` */
  int tap[DT_TAPS]; /* the streams that enter these layers; layers: the stream after the last one; layers + 1: after the
                       final norm */
  /* EAGLE-3 and BLOCK: [H, taps T]; EAGLE: [H, 2H]; CROSS_ATTENTION: [H, 2T]; the bias may be absent */
  dt_matrix fc, fc_bias;
  dt_matrix post; /* CROSS_ATTENTION: [T, H]; BLOCK: [R, H], or absent */
  /* Norms of the target's feature before fc, over all numbers or over each stream. EAGLE-3 only; may be absent. */
  dt_matrix all_norm, stream_norm[DT_TAPS];
  /* [H] EAGLE-3: for e and x; EAGLE (MTP): for e and f, both or none; BLOCK: feature_norm, after fc */
  dt_matrix token_norm, feature_norm;
  bool norm_residual; /* EAGLE-3 only: the residual stream continues from feature_norm(x), not from x */
  bool norm_output;   /* EAGLE and EAGLE-3: the head's own feature is x after final_norm */
  int block_rows;     /* BLOCK only: the maximum number of rows of a block, 2 to DT_DISTANCES */
  int32_t mask;       /* BLOCK only: the token of all its rows but the first */
  bool from_anchor;   /* BLOCK only: the first row predicts, too */
  /* BLOCK only, both or none: [vocab, R] and [vocab, R], or rows for the rows of unembed. The head's caller adds their
   * sums, since they depend on the tree; a backend computes post only. */
  dt_matrix before, after;
  int listed; /* BLOCK only: how many candidates a row has; 0: any number */
  /* All fields from here on: MEDUSA only. */
  int distances, blocks;
  dt_matrix block[DT_DISTANCES][DT_BLOCKS], block_bias[DT_DISTANCES][DT_BLOCKS]; /* [H,H] [H] */
  dt_matrix output[DT_DISTANCES];                                                /* [vocab,H] */
} dt_head_desc;

/* A model's row at position p predicts the token at p + 1. Returns how much later the token is that a head's row at p
 * predicts, distances of a Medusa head apart. */
static inline int dt_head_leads(const dt_head_desc *h) {
  return h->kind == DT_HEAD_BLOCK ? h->from_anchor - 1 : h->kind == DT_HEAD_CROSS_ATTENTION ? 0 : 1;
}

/* The number of tokens that a block head guesses in a pass; 0: the head is another. */
static inline int dt_head_block(const dt_head_desc *h) { return h->block_rows ? h->block_rows - !h->from_anchor : 0; }

#endif
