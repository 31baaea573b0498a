package csrc

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Compares the shims for CUDA and HIP: they have the same files, with the same declarations in the
// same order, and the same tokens after the vendors' names are replaced. Intended differences are
// listed in testdata/twins.txt with the number of tokens that only one of the two has. So most
// edits of only one side fail the test, also in declarations that differ.

// notTwins are files that follow the vendor's header and are not compared.
var notTwins = map[string]string{
	"api.h": "prototypes, numbers and tables of the vendors' libraries",
}

// renamed has the rules that turn CUDA's names into HIP's.
var renamed = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`^CUresult$`), "hipError"},
	{regexp.MustCompile(`^CUuuid$`), "hipUUID"},
	{regexp.MustCompile(`^cuMemHostAlloc$`), "hipHostMalloc"},
	{regexp.MustCompile(`^cuMemFreeHost$`), "hipHostFree"},
	{regexp.MustCompile(`^cuMemHost`), "hipHost"},
	{regexp.MustCompile(`^cuMem(Alloc|AllocAsync|AllocManaged|Free|FreeAsync)$`), "hip$1"},
	{regexp.MustCompile(`^hipAlloc`), "hipMalloc"},
	{regexp.MustCompile(`^cuDeviceGetCount$`), "hipGetDeviceCount"},
	{regexp.MustCompile(`^cuEventCreate$`), "hipEventCreateWithFlags"},
	{regexp.MustCompile(`^cuLaunchKernel$`), "hipModuleLaunchKernel"},
	{regexp.MustCompile(`^cuOccupancy`), "hipModuleOccupancy"},
	{regexp.MustCompile(`^cuCtxGetStreamPriorityRange$`), "hipDeviceGetStreamPriorityRange"},
	{regexp.MustCompile(`^cuCtxEnablePeerAccess$`), "hipDeviceEnablePeerAccess"},
	{regexp.MustCompile(`^cublasCreate$`), "rocblas_create_handle"},
	{regexp.MustCompile(`^cublasDestroy$`), "rocblas_destroy_handle"},
	{regexp.MustCompile(`^cublasSetPointerMode$`), "rocblas_set_pointer_mode"},
	{regexp.MustCompile(`^cublasSetStream$`), "rocblas_set_stream"},
	{regexp.MustCompile(`^cublasSgemm$`), "rocblas_sgemm"},
	{regexp.MustCompile(`^cublasDgemm$`), "rocblas_dgemm"},
	{regexp.MustCompile(`^cublasGemmEx$`), "rocblas_gemm_ex"},
	{regexp.MustCompile(`^CUBLAS_R_`), "ROCBLAS_R_"},
	{regexp.MustCompile(`^CUDA_R_`), "ROCBLAS_R_"},
	{regexp.MustCompile(`^CUBLAS`), "ROCBLAS"},
	{regexp.MustCompile(`^cublas`), "rocblas"},
	{regexp.MustCompile(`^NVRTC`), "HIPRTC"},
	{regexp.MustCompile(`^nvrtc`), "hiprtc"},
	{regexp.MustCompile(`^CONCORD_CUDA_`), "CONCORD_ROCM_"},
	{regexp.MustCompile(`^(concord_shim_)?cuda(_|$)`), "${1}rocm$2"},
	{regexp.MustCompile(`^CUDA_`), "HIP_"},
	{regexp.MustCompile(`^CU_`), "HIP_"},
	{regexp.MustCompile(`^cu$`), "hip"},
	{regexp.MustCompile(`^cu([A-Z])`), "hip$1"},
}

var (
	comment = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)`)
	token   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\w+|[^\s\w]`)
	word    = regexp.MustCompile(`\w+`)
	macro   = regexp.MustCompile(`^#define (\w+)`)
	called  = regexp.MustCompile(`^[\w *]*?(\w+)\(`)
)

// rename renames a token, or each word of a token that is a string.
func rename(s string) string {
	if strings.HasPrefix(s, `"`) {
		words := strings.NewReplacer("cuBLAS", "rocBLAS", "NVRTC", "hipRTC", "CUDA", "HIP").Replace(s)
		return word.ReplaceAllStringFunc(words, rename)
	}
	for _, r := range renamed {
		s = r.from.ReplaceAllString(s, r.to)
	}
	if rest, ok := strings.CutPrefix(s, "CU"); ok { // a type
		s = "hip" + strings.ToUpper(rest[:1]) + rest[1:]
	}
	return s
}

// declaration is a declaration at file level, or one directive of the preprocessor.
type declaration struct {
	name   string
	tokens []string
}

// declarations reads a file that clang-format has formatted: a word or # at the beginning of a line
// begins a declaration.
func declarations(t *testing.T, path string) []declaration {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var list []declaration
	continued := false
	for line := range strings.Lines(comment.ReplaceAllString(string(text), "")) {
		if !continued && (line[0] == '#' || word.MatchString(line[:1])) {
			list = append(list, declaration{name: nameOf(strings.TrimSpace(line))})
		}
		continued = strings.HasSuffix(line, "\\\n")
		for _, s := range token.FindAllString(line, -1) {
			list[len(list)-1].tokens = append(list[len(list)-1].tokens, rename(s))
		}
	}
	return list
}

// nameOf returns the name of a declaration that begins with line.
func nameOf(line string) string {
	if m := macro.FindStringSubmatch(line); m != nil {
		return rename(m[1])
	}
	if line[0] == '#' {
		return strings.ReplaceAll(word.ReplaceAllStringFunc(line, rename), " ", "")
	}
	if m := called.FindStringSubmatch(line); m != nil {
		if strings.HasSuffix(line, ";") { // a prototype
			return rename(m[1]) + ";"
		}
		return rename(m[1])
	}
	line, _, _ = strings.Cut(line, " = ")
	line, _, _ = strings.Cut(line, " {")
	words := word.FindAllString(strings.TrimSuffix(line, "[]"), -1)
	return rename(words[len(words)-1])
}

// alone returns how many tokens of two lists are not in their longest common subsequence.
func alone(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		before := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = before + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			before = above
		}
	}
	return len(a) + len(b) - 2*row[len(b)]
}

// differences compares two files. For each declaration that is not the same in both it returns "cuda" or
// "rocm" if only that file has it, otherwise the number of tokens that only one of them has.
func differences(t *testing.T, cuda, rocm []declaration) map[string]string {
	find := func(list []declaration, name string) int {
		return slices.IndexFunc(list, func(d declaration) bool { return d.name == name })
	}
	found := map[string]string{}
	last := -1
	for _, d := range cuda {
		i := find(rocm, d.name)
		if i < 0 {
			found[d.name] = "cuda"
			continue
		}
		assert.Greater(t, i, last, "%s is at another position among the declarations", d.name)
		last = i
		if n := alone(d.tokens, rocm[i].tokens); n > 0 {
			found[d.name] = strconv.Itoa(n)
		}
	}
	for _, d := range rocm {
		if find(cuda, d.name) < 0 {
			found[d.name] = "rocm"
		}
	}
	return found
}

// listed reads testdata/twins.txt: lines with a reason, and below each, indented, lines of
//
//	FILE DECLARATION cuda|rocm|NUMBER
func listed(t *testing.T) map[string]map[string]string {
	text, err := os.ReadFile("testdata/twins.txt")
	require.NoError(t, err)
	list := map[string]map[string]string{}
	reason := ""
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			reason = ""
		case line[0] != '\t':
			reason += line
		default:
			require.Len(t, fields, 3, line)
			require.NotEmpty(t, reason, "%s has no reason", line)
			file := list[fields[0]]
			if file == nil {
				file = map[string]string{}
				list[fields[0]] = file
			}
			require.NotContains(t, file, fields[1], line)
			file[fields[1]] = fields[2]
		}
	}
	return list
}

func TestTwins(t *testing.T) {
	want := listed(t)
	files, err := filepath.Glob("cuda/*")
	require.NoError(t, err)
	others, err := filepath.Glob("rocm/*")
	require.NoError(t, err)
	assert.Len(t, others, len(files))
	for _, file := range files {
		twin := "rocm/" + strings.Replace(filepath.Base(file), "cuda", "rocm", 1)
		base := filepath.Base(twin)
		if notTwins[base] != "" {
			assert.Contains(t, others, twin)
			continue
		}
		found := differences(t, declarations(t, file), declarations(t, twin))
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if want[base][name] != found[name] {
				assert.Fail(t, fmt.Sprintf("%s %s %s: testdata/twins.txt has %q", base, name, found[name], want[base][name]))
			}
		}
		for name := range want[base] {
			assert.Contains(t, found, name, "testdata/twins.txt: %s: %s does not differ any more", base, name)
		}
		delete(want, base)
	}
	assert.Empty(t, want, "testdata/twins.txt names files that do not exist")
}
