//! Registry of algorithms: one line per algorithm, with a doc comment that help texts show, too.
//!
//! `registry!` turns the line `"irn" => Irn(irn),` into a variant of the configuration enum
//! (externally tagged: `[transport.recovery.irn]`), its name, a variant of each run-time enum with
//! its constructor, and the arms of `impl Trait for Any..`: one predicted branch instead of a
//! virtual call. The module must hold the type `Config` and one type per role, with
//! `fn new(&Config) -> Self`.

macro_rules! registry {
    (
        $(#[$config_doc:meta])*
        config $Config:ident: $Settings:ident $settings:tt
        $(
            $(#[$any_doc:meta])*
            run $Any:ident: $Trait:ident = $Role:ident $methods:tt
        )+
        algorithms $algorithms:tt
    ) => {
        registry!(@config [$(#[$config_doc])*] $Config: $Settings $settings $algorithms);
        $( registry!(@run [$(#[$any_doc])*] $Config, $Any: $Trait = $Role $methods $algorithms); )+
    };

    (@config [$($doc:tt)*] $Config:ident: $Settings:ident { $($methods:tt)* }
        { $( $(#[doc = $about:literal])+ $name:literal => $Variant:ident($module:ident), )+ }
    ) => {
        $($doc)*
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        pub enum $Config {
            $( $(#[doc = $about])+ #[cfg_attr(feature = "config", serde(rename = $name))] $Variant($module::Config), )+
        }
        impl $Config {
            /// The names of all algorithms, as scenario files spell them.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Descriptions of the algorithms in [`NAMES`](Self::NAMES), each one line that ends with a full stop.
            pub const ABOUTS: &'static [&'static str] = &[$( concat!($($about),+).trim_ascii_start() ),+];

            /// Returns every algorithm with its default settings.
            pub fn all() -> impl Iterator<Item = Self> {
                [$( Self::$Variant($module::Config::default()) ),+].into_iter()
            }
            /// Returns the algorithm's name.
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$Variant(_) => $name, )+ }
            }
        }
        $(
            impl From<$module::Config> for $Config {
                fn from(config: $module::Config) -> Self {
                    Self::$Variant(config)
                }
            }
        )+
        impl $Settings for $Config {
            registry!(@methods [$($Variant)+] $($methods)*);
        }
    };

    (@run [$($doc:tt)*] $Config:ident, $Any:ident: $Trait:ident = $Role:ident { $($methods:tt)* }
        { $( $(#[$about:meta])* $name:literal => $Variant:ident($module:ident), )+ }
    ) => {
        $($doc)*
        // An explicit tag: without it, variants are distinguished by a niche inside the largest one, at twice the
        // instructions.
        #[derive(Clone, Debug)]
        #[repr(u8)]
        pub enum $Any {
            $( $(#[$about])* $Variant($module::$Role), )+
        }
        impl From<&$Config> for $Any {
            fn from(config: &$Config) -> Self {
                match config { $( $Config::$Variant(config) => Self::$Variant($module::$Role::new(config)), )+ }
            }
        }
        impl $Trait for $Any {
            registry!(@methods [$($Variant)+] $($methods)*);
        }
    };

    // Expands the methods one by one, each to a match over the variants. The methods are always inlined: little is left
    // of a match where the variant is known, and the functions that it calls have inlining attributes of their own.
    (@methods $variants:tt) => {};
    (@methods $variants:tt
        fn $method:ident(&mut $self:ident $(, $argument:ident: $Type:ty)*) $(-> $Return:ty)?; $($rest:tt)*
    ) => {
        #[inline(always)]
        fn $method(&mut $self $(, $argument: $Type)*) $(-> $Return)? {
            registry!(@call $variants $self.$method($($argument),*))
        }
        registry!(@methods $variants $($rest)*);
    };
    (@methods $variants:tt
        fn $method:ident(&$self:ident $(, $argument:ident: $Type:ty)*) $(-> $Return:ty)?; $($rest:tt)*
    ) => {
        #[inline(always)]
        fn $method(&$self $(, $argument: $Type)*) $(-> $Return)? {
            registry!(@call $variants $self.$method($($argument),*))
        }
        registry!(@methods $variants $($rest)*);
    };
    (@call [$($Variant:ident)+] $self:ident.$method:ident $arguments:tt) => {
        match $self { $( Self::$Variant(inner) => inner.$method $arguments, )+ }
    };
}
pub(crate) use registry;
