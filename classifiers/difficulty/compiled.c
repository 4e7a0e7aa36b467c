/* The hot path of `features.py` and `scorer.py` in C: one text to a signed gain.
 *
 * The same hashes (CRC-32), the same sums in the same order and no fused operations, so that each
 * number is that of the Python code to the last bit; a property test holds both together. Needs
 * nothing but a C library. Compile with -ffp-contract=off, and never with -ffast-math.
 *
 * Memory: reads `size` bytes of `data` and the arrays of the model, writes one `Found`; the stack
 * holds 50 KB. No allocation, no state besides the tables that `domicile_prepare` fills.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BUCKETS 65536
#define STRUCTURE 11
#define TEXT 7 /* of STRUCTURE, how many are of the text */
#define BASE 3 /* before the structure: weak, strong, common */
#define INPUTS (BASE + STRUCTURE)
#define ROWS 9 /* the linear part and at most eight directions */
#define UNIT 1048576.0
#define WEIGHT 1073741824.0
#define TOP (3.0 * UNIT)
#define LONGEST 8192 /* bytes of a text; what is read of one is shorter */
#define AT_ONCE 255 /* no sum of so many bytes is too large for its place */
#define LOW 0x00FF00FFu /* two of the four bytes of a record, with a byte above each for sums */
#define IN_WORD 56 /* the counter that says if a byte is of a word */

typedef struct {
    const uint8_t *words; /* BUCKETS records: weak (signed), how common, strong (signed), known */
    double scales[2], offsets[2], intercept;
    double centre[INPUTS], inverse[INPUTS]; /* to z-scores times UNIT */
    int64_t rows[ROWS][INPUTS];             /* linear, then directions, times WEIGHT */
    double squares[ROWS];                   /* of each direction */
    int32_t inputs, rows_used;              /* how many of INPUTS and of ROWS count */
} Model;

typedef struct {
    double gain, distance, known, wide, distinct, words, code;
    double inputs[INPUTS]; /* both base heads, how common words are, then the structure */
} Found;

typedef struct {
    Found found;                    /* written */
    double calls[STRUCTURE - TEXT]; /* the four fields of the call */
    const Model *model;
} Call;

enum { DIGITS, SYMBOLS, LETTERS, LINES, HIGH, LANES };
typedef struct {
    uint32_t of[LANES];
} Counts;

typedef struct {
    int64_t weak, strong;
    int32_t words, distinct, known, common;
    int32_t option_words, option_distinct, option_common;
    Counts stem, options;
    uint64_t seen[BUCKETS / 64];
    uint8_t text[LONGEST + 8]; /* eight bytes can be read at each of the text's */
    uint16_t edges[LONGEST + 2]; /* where words begin and end, in turn */
    uint16_t word[LONGEST / 2 + 1]; /* buckets */
} Bag;

#define BELOW 3
/* From BELOW on: the CRC of one byte, and of one byte before one to seven zeros. Below: the byte as
 * it lies in a state, when fewer bytes follow than a state has. */
static uint32_t CRC[BELOW + 8][256];
static uint32_t START[9]; /* what becomes of the first state over so many bytes */
static uint64_t CLASS[256]; /* a counter of eight bits for each of Counts, and IN_WORD */

static void mark(const char *members, int lane) {
    for (; *members; members++) CLASS[(uint8_t)*members] |= 1ull << (8 * lane);
}

static uint64_t eight(const uint8_t *at) {
    uint64_t low = (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
                   (uint64_t)at[3] << 24;
    uint64_t high = (uint64_t)at[4] | (uint64_t)at[5] << 8 | (uint64_t)at[6] << 16 |
                    (uint64_t)at[7] << 24;
    return low | high << 32;
}

/* What the lowest `count` (1 to 8) bytes of `bytes` add to the state of a CRC; those above don't
 * count. They are moved behind zeros, which leave a state of zero as it is: no branch, no loop. */
static uint32_t added(uint64_t bytes, uint32_t count) {
    uint64_t block = bytes << (64 - 8 * count);
    const uint32_t(*of)[256] = CRC + BELOW;
    return of[7][block & 255] ^ of[6][block >> 8 & 255] ^ of[5][block >> 16 & 255] ^
           of[4][block >> 24 & 255] ^ of[3][block >> 32 & 255] ^ of[2][block >> 40 & 255] ^
           of[1][block >> 48 & 255] ^ of[0][block >> 56];
}

/* What becomes of a state of a CRC over `count` (1 to 8) bytes, besides what they add. */
static uint32_t moved(uint32_t state, uint32_t count) {
    const uint32_t(*of)[256] = CRC + BELOW + count;
    return of[-1][state & 255] ^ of[-2][state >> 8 & 255] ^ of[-3][state >> 16 & 255] ^
           of[-4][state >> 24];
}

/* Fills the tables; called once, before anything else. Returns the sizes of the structs. */
int64_t domicile_prepare(void) {
    memset(CLASS, 0, sizeof CLASS);
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = (rest >> 1) ^ (rest & 1 ? 0xEDB88320u : 0);
        CRC[BELOW][byte] = rest;
        for (int k = 1; k <= BELOW; k++) CRC[BELOW - k][byte] = byte << 8 * (k - 1);
        int letter = (byte >= 'a' && byte <= 'z') || byte >= 128;
        int digit = byte >= '0' && byte <= '9';
        if (letter || digit || (byte && strchr("\\$=%^", (int)byte)))
            CLASS[byte] |= 1ull << IN_WORD;
        if (letter) CLASS[byte] |= 1ull << (8 * LETTERS);
        if (byte >= 128) CLASS[byte] |= 1ull << (8 * HIGH);
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int zeros = 1; zeros < 8; zeros++) {
            uint32_t rest = CRC[BELOW + zeros - 1][byte];
            CRC[BELOW + zeros][byte] = (rest >> 8) ^ CRC[BELOW][rest & 255];
        }
    for (uint32_t count = 1; count <= 8; count++) START[count] = moved(~0u, count);
    mark("0123456789", DIGITS);
    mark("=+^*/\\$<>|()[]{}", SYMBOLS);
    mark("\n", LINES);
    return (int64_t)sizeof(Model) * 100000 + (int64_t)sizeof(Found) + (int64_t)sizeof(Call);
}

/* Counts the bytes of [at, end) and finds the edges of words there, without a branch: half of them
 * would be guessed wrong. Returns how many edges there are now, an even number. */
static int32_t edges(Bag *bag, Counts *all, int64_t at, int64_t end, int32_t found) {
    uint64_t before = 0;
    while (at < end) {
        int64_t stop = end - at > AT_ONCE ? at + AT_ONCE : end;
        uint64_t counts = 0;
        for (; at < stop; at++) {
            uint64_t of = CLASS[bag->text[at]];
            counts += of;
            bag->edges[found] = (uint16_t)at;
            found += (int32_t)((of ^ before) >> IN_WORD);
            before = of;
        }
        for (int lane = 0; lane < LANES; lane++) all->of[lane] += counts >> 8 * lane & 255;
    }
    bag->edges[found] = (uint16_t)end;
    return found + (found & 1);
}

static void hashed(Bag *bag) {
    for (int32_t i = 0; i < bag->words; i++) {
        const uint8_t *at = bag->text + bag->edges[2 * i], *end = bag->text + bag->edges[2 * i + 1];
        uint32_t size = end - at < 8 ? (uint32_t)(end - at) : 8;
        uint32_t state = added(eight(at), size) ^ START[size];
        while ((at += size) < end) {
            size = end - at < 8 ? (uint32_t)(end - at) : 8;
            state = added(eight(at), size) ^ moved(state, size);
        }
        bag->word[i] = (uint16_t)~state;
    }
}

/* The words from `at` on, each bucket once. Returns how many of them were new to the bag. */
static int32_t count_words(Bag *bag, const Model *model, int32_t at, int32_t end) {
    int32_t distinct = 0;
    while (at < end) {
        int32_t stop = end - at > AT_ONCE ? at + AT_ONCE : end;
        uint32_t heads = 0, marks = 0, fresh = 0;
        for (; at < stop; at++) {
            uint32_t bucket = bag->word[at];
            const uint8_t *of = model->words + 4 * bucket;
            uint64_t *slot = &bag->seen[bucket >> 6];
            uint32_t new = (uint32_t)(~*slot >> (bucket & 63) & 1);
            *slot |= 1ull << (bucket & 63);
            /* Sums of positive numbers, so that none borrows from its neighbour: weak + 128. */
            uint32_t record = (((uint32_t)of[0] | (uint32_t)of[1] << 8 | (uint32_t)of[2] << 16 |
                                (uint32_t)of[3] << 24) ^ 0x00800080u) & (0u - new);
            heads += record & LOW;
            marks += record >> 8 & LOW;
            fresh += new;
        }
        bag->weak += (int64_t)(heads & 0xFFFF) - 128 * (int64_t)fresh;
        bag->strong += (int64_t)(heads >> 16) - 128 * (int64_t)fresh;
        bag->common += (int32_t)(marks & 0xFFFF);
        bag->known += (int32_t)(marks >> 16);
        distinct += (int32_t)fresh;
    }
    return distinct;
}

/* The words of the options before the others, so that those count as theirs. */
static void bagged(Bag *bag, const Model *model, int64_t size, int64_t stem, int64_t options) {
    int32_t first = edges(bag, &bag->stem, 0, stem, 0) / 2;
    bag->words = edges(bag, &bag->options, options, size, 2 * first) / 2;
    hashed(bag);
    bag->option_words = bag->words - first;
    bag->option_distinct = count_words(bag, model, first, bag->words);
    bag->option_common = bag->common;
    bag->distinct = bag->option_distinct + count_words(bag, model, 0, first);
}

/* How common the words of the options are, or those of the text where there are none. */
static double common(const Bag *bag) {
    if (bag->option_distinct) return (double)bag->option_common / (double)bag->option_distinct;
    return bag->distinct ? (double)bag->common / (double)bag->distinct : 0.0;
}

/* The first place of `what`, by its byte number `rare`: the search for one byte is fast. */
static const uint8_t *find(const uint8_t *data, int64_t size, const char *what, int64_t rare) {
    int64_t length = (int64_t)strlen(what);
    const uint8_t *at = data + rare, *last = data + size - length + rare;
    for (; at <= last; at++) {
        at = memchr(at, what[rare], (size_t)(last - at + 1));
        if (at == NULL) return NULL;
        if (memcmp(at - rare, what, (size_t)length) == 0) return at - rare;
    }
    return NULL;
}

static int has(const uint8_t *data, int64_t size, const char *what, int64_t rare) {
    return size > 0 && find(data, size, what, rare) != NULL;
}

/* How much the lengths of lines differ: their standard deviation, as a logarithm. */
static double spread(const uint8_t *at, int64_t size, int64_t lines) {
    const uint8_t *end = at + size;
    int64_t squares = 0, total = size - (lines - 1);
    while (at <= end) {
        const uint8_t *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (stop == NULL) stop = end;
        squares += (stop - at) * (stop - at);
        at = stop + 1;
    }
    return log(sqrt((double)(lines * squares - total * total)) / (double)lines + 1.0);
}

/* 1 if `b` after `a` is such as code has. Comparisons, not tables: compilers do many at once. */
static inline uint8_t pair(uint8_t a, uint8_t b) {
    return (uint8_t)(((a == '\n') & ((b == ' ') | (b == '\t'))) |
                     (((a == ';') | (a == '{')) & (b == '\n')) | ((a == '(') & (b == ')')) |
                     ((a == ')') & ((b == ':') | (b == ';'))) | ((a == ']') & (b == ';')) |
                     ((a == '"') & ((b == ':') | (b == ','))) | ((a == '<') & (b == '/')) |
                     (((a == '-') | (a == '/')) & (b == '>')));
}

/* How many pairs of bytes of a text are such as code has, after the first one. */
static int64_t coded(const uint8_t *text, int64_t size) {
    int64_t pairs = 0;
    for (int64_t i = 1; i < size;) {
        int64_t stop = size - i > AT_ONCE ? i + AT_ONCE : size;
        uint8_t some = 0;
        for (; i < stop; i++) some = (uint8_t)(some + pair(text[i - 1], text[i]));
        pairs += some;
    }
    return pairs > 0 ? pairs - 1 : 0;
}

static void shaped(Found *found, const Bag *bag, int64_t bytes, int64_t stem, int64_t begin) {
    const uint32_t *in_stem = bag->stem.of, *in_options = bag->options.of;
    int64_t rest = bytes - begin, lines = in_options[LINES] + 1;
    double size = (double)(bytes + 1), count = (double)(bag->words ? bag->words : 1);
    double *out = found->inputs + BASE;
    found->words = bag->words;
    found->code = (double)coded(bag->text, bytes) / size;
    found->distinct = (double)bag->distinct / count;
    found->known = bag->distinct ? (double)bag->known / (double)bag->distinct : 0.0;
    found->wide = bytes ? (double)(in_stem[HIGH] + in_options[HIGH]) / (double)bytes : 0.0;
    *out++ = (double)bag->option_distinct / (double)(bag->option_words + 1);
    *out++ = rest ? spread(bag->text + begin, rest, lines) : 0.0;
    *out++ = rest && in_options[LETTERS] < lines ? 1.0 : 0.0;
    *out++ = (double)(in_stem[DIGITS] + in_options[DIGITS]) / size;
    *out++ = has(bag->text, stem, "which of the following", 0);
    *out++ = (double)(in_stem[SYMBOLS] + in_options[SYMBOLS]) / size;
    *out++ = log((double)(stem + 1));
}

static double along(const int64_t *row, const int64_t *z, int32_t size) {
    int64_t sum = 0;
    for (int32_t i = 0; i < size; i++) sum += row[i] * z[i];
    return (double)sum * (1.0 / (UNIT * WEIGHT));
}

static void scored(Found *found, const Model *model, const Bag *bag) {
    int64_t whole[INPUTS];
    double z[INPUTS], distance = 0.0, norm = bag->distinct ? sqrt((double)bag->distinct) : 1.0;
    found->inputs[0] = (double)bag->weak * model->scales[0] / norm + model->offsets[0];
    found->inputs[1] = (double)bag->strong * model->scales[1] / norm + model->offsets[1];
    found->inputs[2] = common(bag);
    for (int32_t i = 0; i < model->inputs; i++) {
        z[i] = (found->inputs[i] - model->centre[i]) * model->inverse[i];
        /* As Python compares: what is no number is clipped to the top. */
        whole[i] = (int64_t)(z[i] < TOP ? (z[i] > -TOP ? z[i] : -TOP) : TOP);
    }
    for (int32_t i = BASE; i < BASE + TEXT; i++) distance += z[i] * z[i];
    found->distance = distance * (1.0 / (UNIT * UNIT));
    double gain = model->intercept + along(model->rows[0], whole, model->inputs);
    for (int32_t r = 1; r < model->rows_used; r++) {
        double size = along(model->rows[r], whole, model->inputs);
        gain += model->squares[r - 1] * size * size;
    }
    found->gain = gain;
}

/* Capital letters of ASCII become small ones. */
static void lowered(uint8_t *out, const char *data, int32_t size) {
    for (int32_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)data[i];
        out[i] = (uint8_t)(byte + ((uint8_t)(byte - 'A') < 26 ? 32 : 0));
    }
}

/* `data`: UTF-8, at most LONGEST bytes. Returns 0, or -1 for a longer text, of which nothing is
 * written. */
int32_t domicile_measure(Call *call, const char *data, int32_t size) {
    const Model *model = call->model;
    Found *found = &call->found;
    Bag bag;
    if (size < 0 || size > LONGEST) return -1;
    memset(&bag, 0, offsetof(Bag, text));
    lowered(bag.text, data, size);
    memset(bag.text + size, 0, 8);
    const uint8_t *cut = find(bag.text, size, "\na. ", 0);
    int64_t stem = cut ? cut - bag.text : size, options = cut ? stem + 4 : size;
    bagged(&bag, model, size, stem, options);
    shaped(found, &bag, size, stem, options);
    for (int i = 0; i < STRUCTURE - TEXT; i++) found->inputs[BASE + TEXT + i] = call->calls[i];
    scored(found, model, &bag);
    return 0;
}
