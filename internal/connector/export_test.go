package connector

// Translated is translated, for tests of the commands that there are.
var Translated = translated

// Offer is offer, for the same.
var Offer = offer
