package devices

// The device files through which programs reach a GPU, and this user's access to them.

// node is one device node.
type node struct {
	Path      string `json:"path"`
	Mode      string `json:"mode"`
	Owner     string `json:"owner"` // "root:render"
	ReadWrite bool   `json:"read_write"`
	Error     string `json:"error,omitempty"`
	Remedy    string `json:"remedy,omitempty"`
}

func (n node) access() string {
	switch {
	case n.Error != "":
		return n.Error
	case n.ReadWrite:
		return "ok"
	}
	return "permission denied"
}
