//! Registry of algorithms: one line per algorithm, with a doc comment that help texts show, too.
//!
//! `registry!` turns the line `"irn" => Irn(irn),` into a variant of the configuration enum (externally tagged:
//! `[transport.recovery.irn]`), its name, a variant of the parameters that resolved settings make, a variant of each
//! run-time enum with its constructor, and the arms of `impl Trait for Any..`: one predicted branch instead of a
//! virtual call. The module must hold the type `Config` and one type per role, with `fn new(&Params) -> Self`, where
//! `Params` is the associated type of `Config`. `own [Own own]` at the end adds the variant `Own` for algorithms of
//! users' own, whose module `own` has types of these names, too.

macro_rules! registry {
    (
        $(#[$config_doc:meta])*
        config $Config:ident: $Settings:ident $settings:tt
        $(#[$params_doc:meta])*
        params $Params:ident $(: $Asked:ident $asked:tt)?
        $(shared $Shared:ident: $Part:ident = $SharedRole:ident as $SharedTrait:ident;)?
        $(
            $(#[$any_doc:meta])*
            run $Any:ident: $Trait:ident $(<$Associated:ident = $Type:ty>)? = $Role:ident $methods:tt
        )+
        algorithms $algorithms:tt
        own $own:tt
    ) => {
        registry!(@config [$(#[$config_doc])*] $Config: $Settings $settings $Params $algorithms $own);
        registry!(@params [$(#[$params_doc])*] $Params, $Config: $Settings $algorithms $own $($Asked $asked)?);
        $( registry!(@shared $Shared: $Part = $SharedRole as $SharedTrait $algorithms); )?
        $(
            registry!(@run [$(#[$any_doc])*] $Params, $Any: $Trait [$($Associated = $Type)?] = $Role $methods
                $algorithms $own);
        )+
    };

    (@config [$($doc:tt)*] $Config:ident: $Settings:ident { $($methods:tt)* } $Params:ident
        { $( $(#[doc = $about:literal])+ $name:literal => $Variant:ident($module:ident), )+ }
        [$($Own:ident $own:ident)?]
    ) => {
        $($doc)*
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        pub enum $Config {
            $( $(#[doc = $about])+ #[cfg_attr(feature = "config", serde(rename = $name))] $Variant($module::Config), )+
            $(
                /// An algorithm of a user's own; not written in scenario files.
                #[cfg_attr(feature = "config", serde(skip))]
                $Own($own::Config),
            )?
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
            pub fn name(&self) -> &'static str {
                match self { $( Self::$Variant(_) => $name, )+ $( Self::$Own(own) => own.name(), )? }
            }
        }
        #[cfg(feature = "config")]
        impl $Config {
            /// Reads the settings of the algorithm `name` as the next value of `map`; `None` if there is no such
            /// algorithm. For tables in which an algorithm's name is a key among others.
            ///
            /// # Errors
            /// Those of the settings.
            pub fn next_value<'de, A: serde::de::MapAccess<'de>>(
                name: &str,
                map: &mut A,
            ) -> Result<Option<Self>, A::Error> {
                match name {
                    $( $name => map.next_value().map(Self::$Variant).map(Some), )+
                    _ => Ok(None),
                }
            }
            /// Writes the algorithm's name and its settings as an entry of `map`.
            ///
            /// # Errors
            /// Those of the map.
            pub fn serialize_entry<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $( Self::$Variant(config) => map.serialize_entry($name, config), )+
                    #[allow(unreachable_patterns, reason = "only some registries have algorithms of users' own")]
                    _ => Ok(()),
                }
            }
            /// Returns the schemas of the settings of all algorithms, in the order of [`NAMES`](Self::NAMES).
            pub fn schemas(generator: &mut schemars::SchemaGenerator) -> alloc::vec::Vec<schemars::Schema> {
                alloc::vec![$( generator.subschema_for::<$module::Config>() ),+]
            }
        }
        $(
            impl From<$module::Config> for $Config {
                fn from(config: $module::Config) -> Self {
                    Self::$Variant(config)
                }
            }
        )+
        $(
            impl From<$own::Config> for $Config {
                fn from(config: $own::Config) -> Self {
                    Self::$Own(config)
                }
            }
        )?
        impl $Settings for $Config {
            type Params = $Params;
            fn params(&self) -> Result<$Params, SettingError> {
                match self {
                    $( Self::$Variant(config) => config.params().map($Params::$Variant), )+
                    $( Self::$Own(config) => config.params().map($Params::$Own), )?
                }
            }
            registry!(@methods [$($Variant $module)+ $($Own $own)?] $($methods)*);
        }
    };

    (@params [$($doc:tt)*] $Params:ident, $Config:ident: $Settings:ident
        { $( $(#[$about:meta])* $name:literal => $Variant:ident($module:ident), )+ }
        [$($Own:ident $own:ident)?]
        $($asked:tt)*
    ) => {
        $($doc)*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub enum $Params {
            $( $(#[$about])* $Variant(<$module::Config as $Settings>::Params), )+
            $(
                /// An algorithm of a user's own.
                $Own(<$own::Config as $Settings>::Params),
            )?
        }
        $(
            impl From<<$module::Config as $Settings>::Params> for $Params {
                fn from(params: <$module::Config as $Settings>::Params) -> Self {
                    Self::$Variant(params)
                }
            }
            /// Fails for another algorithm's parameters.
            impl<'a> TryFrom<&'a $Params> for &'a <$module::Config as $Settings>::Params {
                type Error = ();
                fn try_from(params: &'a $Params) -> Result<Self, ()> {
                    if let $Params::$Variant(params) = params { Ok(params) } else { Err(()) }
                }
            }
        )+
        registry!(@asked $Params, [$($Variant $module)+ $($Own $own)?] $($asked)*);
    };
    (@asked $Params:ident, $variants:tt) => {};
    (@asked $Params:ident, $variants:tt $Asked:ident { $($methods:tt)* }) => {
        impl $Asked for $Params {
            registry!(@methods $variants $($methods)*);
        }
    };

    (@run [$($doc:tt)*] $Params:ident, $Any:ident: $Trait:ident [$($Associated:ident = $Type:ty)?] = $Role:ident
        { $($methods:tt)* }
        { $( $(#[$about:meta])* $name:literal => $Variant:ident($module:ident), )+ }
        [$($Own:ident $own:ident)?]
    ) => {
        $($doc)*
        // An explicit tag: without it, variants are distinguished by a niche inside the largest one, at twice the
        // instructions.
        #[repr(u8)]
        pub enum $Any {
            $( $(#[$about])* $Variant($module::$Role), )+
            $(
                /// An algorithm of a user's own.
                $Own($own::$Role),
            )?
        }
        impl From<&$Params> for $Any {
            fn from(params: &$Params) -> Self {
                match params {
                    $( $Params::$Variant(params) => Self::$Variant($module::$Role::new(params)), )+
                    $( $Params::$Own(params) => Self::$Own($own::$Role::new(params)), )?
                }
            }
        }
        impl $Trait for $Any {
            $(type $Associated = $Type;)?
            registry!(@methods [$($Variant $module)+ $($Own $own)?] $($methods)*);
        }
    };

    (@shared $Shared:ident: $Part:ident = $Role:ident as $Trait:ident
        { $( $(#[$about:meta])* $name:literal => $Variant:ident($module:ident), )+ }
    ) => {
        /// State that is shared on a NIC, by algorithm.
        #[derive(Clone, Debug, Default)]
        pub struct $Shared {
            $( $(#[$about])* pub $module: <$module::$Role as $Trait>::Shared, )+
        }
        impl $Shared {
            /// Returns the state of each algorithm.
            fn parts(&self) -> impl Iterator<Item = &dyn $Part> {
                [$( &self.$module as &dyn $Part ),+].into_iter()
            }
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
    // Of the shared state, each algorithm sees its own.
    (@methods $variants:tt
        [$lent:ident] fn $method:ident(&mut $self:ident $(, $argument:ident: $Type:ty)*) $(-> $Return:ty)?;
        $($rest:tt)*
    ) => {
        #[inline(always)]
        fn $method(&mut $self $(, $argument: $Type)*) $(-> $Return)? {
            registry!(@lend $lent $variants $self.$method($($argument),*))
        }
        registry!(@methods $variants $($rest)*);
    };
    (@lend $lent:ident [$($Variant:ident $module:ident)+] $self:ident.$method:ident $arguments:tt) => {
        match $self {
            $( Self::$Variant(inner) => {
                let $lent = &mut $lent.$module;
                inner.$method $arguments
            } )+
        }
    };
    (@call [$($Variant:ident $module:ident)+] $self:ident.$method:ident $arguments:tt) => {
        match $self { $( Self::$Variant(inner) => inner.$method $arguments, )+ }
    };
    ($(#[$doc:meta])* config $($all:tt)+) => {
        registry! { $(#[$doc])* config $($all)+ own [] }
    };
}
pub(crate) use registry;
