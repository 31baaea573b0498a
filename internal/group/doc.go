// Package group runs processes in groups of their own, so that they end with all that they have started themselves.
package group
