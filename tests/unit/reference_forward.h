/* The canonical model computed directly from its formulas in double precision: slow and simple. Backends are compared
 * with it. It computes whole sequences only; token i attends to tokens 0..i. */
#ifndef REFERENCE_FORWARD_H
#define REFERENCE_FORWARD_H

#include "backend/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of a matrix as doubles, [rows][cols]; malloc'd. */
static double *reference_numbers(const dt_matrix *m) {
  size_t row = dt_row_bytes(m->dtype, (size_t)m->cols), n = (size_t)m->rows * (size_t)m->cols;
  char *raw = malloc((size_t)m->rows * row);
  float *wide = malloc(n * sizeof *wide);
  double *numbers = malloc(n * sizeof *numbers);
  dt_error err;
  if (dt_read_rows(m, 0, m->rows, raw, &err) != DT_OK) abort();
  dt_type_of(m->dtype)->decode(raw, n, wide);
  for (size_t i = 0; i < n; i++) numbers[i] = wide[i];
  free(raw), free(wide);
  return numbers;
}

/* A vector, or zeros if the model does not have it. */
static double *reference_vector(const dt_matrix *m, int n) {
  return m->source ? reference_numbers(m) : calloc((size_t)n, sizeof(double));
}

/* y[n][rows] = x[n][cols] w^T + bias; malloc'd. */
static double *reference_linear(const dt_matrix *w, const dt_matrix *bias, const double *x, int n) {
  double *y = malloc(sizeof *y * (size_t)n * (size_t)w->rows), *all = reference_numbers(w);
  double *start = reference_vector(bias, w->rows), *row = all;
  for (int r = 0; r < w->rows; r++, row += w->cols)
    for (int i = 0; i < n; i++) {
      double sum = start[r];
      for (int c = 0; c < w->cols; c++) sum += row[c] * x[(size_t)i * (size_t)w->cols + (size_t)c];
      y[(size_t)i * (size_t)w->rows + (size_t)r] = sum;
    }
  free(all), free(start);
  return y;
}

/* LayerNorm: (x - mean) / sqrt(variance + eps) * weight + bias. RMSNorm: x / sqrt(mean of squares + eps) * weight. */
static double *reference_norm(const dt_model_desc *d, const dt_matrix *weight, const dt_matrix *bias, const double *x,
                              int n) {
  int H = d->shape.hidden;
  double *y = malloc(sizeof *y * (size_t)n * (size_t)H);
  double *scale = reference_numbers(weight), *shift = reference_vector(bias, H);
  for (int i = 0; i < n; i++, x += H) {
    double mean = 0, square = 0;
    for (int c = 0; c < H && d->shape.norm == DT_NORM_LAYER; c++) mean += x[c] / H;
    for (int c = 0; c < H; c++) square += (x[c] - mean) * (x[c] - mean) / H;
    for (int c = 0; c < H; c++) y[i * H + c] = (x[c] - mean) / sqrt(square + d->shape.norm_eps) * scale[c] + shift[c];
  }
  free(scale), free(shift);
  return y;
}

static double reference_act(dt_act_kind act, double x) {
  switch (act) {
  case DT_ACT_GELU_ERF: return x * 0.5 * (1 + erf(x / sqrt(2)));
  case DT_ACT_GELU_TANH: return x * 0.5 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case DT_ACT_SILU: return x / (1 + exp(-x));
  case DT_ACT_CLAMPED: break; /* these models do not use it */
  }
  return NAN;
}

/* Divides every head by its root mean square, if the layer does this. */
static void reference_norm_heads(const dt_model_desc *d, const dt_matrix *weight, double *x, int heads) {
  int hd = d->shape.head_dim;
  double *scale = reference_vector(weight, hd);
  for (int h = 0; weight->source && h < heads; h++, x += hd) {
    double square = 0;
    for (int c = 0; c < hd; c++) square += x[c] * x[c] / hd;
    for (int c = 0; c < hd; c++) x[c] = x[c] / sqrt(square + d->shape.norm_eps) * scale[c];
  }
  free(scale);
}

/* Rotates the first rotary_dims numbers of every head, where a pair is two numbers half of them apart: (a, b) -> (a cos
 * - b sin, b cos + a sin). */
static void reference_rotate(const dt_model_desc *d, double *x, int heads, int n) {
  int half = d->shape.rotary_dims / 2;
  for (int i = 0; i < n; i++)
    for (int h = 0; h < heads; h++, x += d->shape.head_dim)
      for (int j = 0; j < half; j++) {
        double angle = (double)i * d->inv_freq[j], a = x[j], b = x[j + half];
        x[j] = a * cos(angle) - b * sin(angle);
        x[j + half] = b * cos(angle) + a * sin(angle);
      }
}

/* Causal attention of all heads, [n][heads * head_dim]; kv head = head / (heads / kv_heads). */
static double *reference_attend(const dt_model_desc *d, const double *q, const double *k, const double *v, int n) {
  int hd = d->shape.head_dim, A = d->shape.heads * hd, G = d->shape.kv_heads * hd;
  double *out = calloc((size_t)n * (size_t)A, sizeof *out), *p = malloc(sizeof *p * (size_t)n);
  for (int h = 0; h < d->shape.heads; h++) {
    int g = h / (d->shape.heads / d->shape.kv_heads);
    for (int i = 0; i < n; i++) {
      double max = -INFINITY, sum = 0;
      for (int j = 0; j <= i; j++) {
        p[j] = 0;
        for (int c = 0; c < hd; c++) p[j] += q[i * A + h * hd + c] * k[j * G + g * hd + c];
        p[j] /= sqrt(hd);
        if (p[j] > max) max = p[j];
      }
      for (int j = 0; j <= i; j++) sum += p[j] = exp(p[j] - max);
      for (int j = 0; j <= i; j++)
        for (int c = 0; c < hd; c++) out[i * A + h * hd + c] += p[j] / sum * v[j * G + g * hd + c];
    }
  }
  free(p);
  return out;
}

static double *reference_attention(const dt_model_desc *d, const dt_layer *l, const double *x, int n) {
  double *q = reference_linear(&l->q, &l->q_bias, x, n), *k = reference_linear(&l->k, &l->k_bias, x, n),
         *v = reference_linear(&l->v, &l->v_bias, x, n);
  reference_norm_heads(d, &l->q_norm, q, n * d->shape.heads);
  reference_norm_heads(d, &l->k_norm, k, n * d->shape.kv_heads);
  reference_rotate(d, q, d->shape.heads, n);
  reference_rotate(d, k, d->shape.kv_heads, n);
  double *mixed = reference_attend(d, q, k, v, n), *out = reference_linear(&l->o, &l->o_bias, mixed, n);
  free(q), free(k), free(v), free(mixed);
  return out;
}

static double *reference_mlp(const dt_model_desc *d, const dt_layer *l, const double *x, int n) {
  double *up = reference_linear(&l->up, &l->up_bias, x, n);
  double *gate = l->gate.source ? reference_linear(&l->gate, &l->gate_bias, x, n) : NULL;
  for (int i = 0; i < n * d->shape.inter; i++)
    up[i] = gate ? reference_act(d->shape.act, gate[i]) * up[i] : reference_act(d->shape.act, up[i]);
  double *out = reference_linear(&l->down, &l->down_bias, up, n);
  free(up), free(gate);
  return out;
}

/* Logits [n][vocab] of tokens[0..n-1]; malloc'd. */
static double *reference_forward(const dt_model_desc *d, const int32_t *tokens, int n) {
  int H = d->shape.hidden;
  double *x = malloc(sizeof *x * (size_t)n * (size_t)H), *embed = reference_numbers(&d->embed);
  for (int i = 0; i < n; i++) memcpy(x + i * H, embed + tokens[i] * H, sizeof *x * (size_t)H);
  free(embed);
  for (int index = 0; index < d->shape.layers; index++) {
    const dt_layer *l = &d->layer[index];
    double *norm1 = reference_norm(d, &l->norm1, &l->norm1_bias, x, n), *a = reference_attention(d, l, norm1, n);
    double *norm2 = d->shape.parallel_residual ? reference_norm(d, &l->norm2, &l->norm2_bias, x, n) : NULL;
    for (int i = 0; i < n * H; i++) x[i] += a[i];
    if (!norm2) norm2 = reference_norm(d, &l->norm2, &l->norm2_bias, x, n);
    double *m = reference_mlp(d, l, norm2, n);
    for (int i = 0; i < n * H; i++) x[i] += m[i];
    free(norm1), free(a), free(norm2), free(m);
  }
  double *norm = reference_norm(d, &d->final_norm, &d->final_norm_bias, x, n);
  dt_matrix no_bias = {0};
  double *logits = reference_linear(&d->unembed, &no_bias, norm, n);
  free(x), free(norm);
  return logits;
}

#endif
